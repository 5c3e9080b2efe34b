"""``/secrets`` and ``/projects/{project}/secrets``: names and owners; no answer has a value."""

from typing import Annotated

from fastapi import Depends, Path, Response

from service.api.answers import answer
from service.api.auth import context, requires
from service.api.routes.refs import ProjectPath
from service.api.routes.router import api_router
from service.context import Context
from service.identity.callers import Caller
from service.secrets import store
from torchyard import api

router = api_router("secrets")

Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]
Submitter = Annotated[Caller, requires("submit")]
SecretPath = Annotated[str, Path(description="Name of the secret.")]


@router.get("/secrets", response_model=list[api.Secret])
def list_secrets(caller: Reader, ctx: Ctx) -> Response:
    """List one's own secrets and those of one's projects. Of all projects for administrators; never their values."""
    return answer(store.list_secrets(ctx.db, caller))


@router.put("/secrets/{name}", response_model=api.Secret)
def set_secret(name: SecretPath, value: api.SecretValue, caller: Submitter, ctx: Ctx) -> Response:
    """Set a secret of one's own. Jobs that name it get the value that it has when they start."""
    return answer(store.set_secret(ctx.db, ctx.secret_keys, caller, name, value, ctx.now_us()))


@router.delete("/secrets/{name}", status_code=204)
def remove_secret(name: SecretPath, caller: Submitter, ctx: Ctx) -> None:
    """Remove a secret of one's own. Waiting jobs that name it no longer start."""
    store.remove_secret(ctx.db, caller, name, ctx.now_us())


@router.put("/projects/{project}/secrets/{name}", response_model=api.Secret)
def set_project_secret(
    project: ProjectPath, name: SecretPath, value: api.SecretValue, caller: Submitter, ctx: Ctx
) -> Response:
    """Set a secret of a project, for jobs that its members run in it."""
    return answer(store.set_secret(ctx.db, ctx.secret_keys, caller, name, value, ctx.now_us(), project))


@router.delete("/projects/{project}/secrets/{name}", status_code=204)
def remove_project_secret(project: ProjectPath, name: SecretPath, caller: Submitter, ctx: Ctx) -> None:
    """Remove a secret of a project. Waiting jobs that name it no longer start."""
    store.remove_secret(ctx.db, caller, name, ctx.now_us(), project)
