"""``/secrets`` and ``/projects/{project}/secrets``: names and owners; no answer has a value."""

from typing import Annotated

from fastapi import Depends, Response

from service.api.answers import answer
from service.api.auth import context, requires
from service.api.routes.router import api_router
from service.context import Context
from service.identity.callers import Caller
from service.secrets import store
from torchyard import api

router = api_router("secrets")

Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]
Submitter = Annotated[Caller, requires("submit")]


@router.get("/secrets", response_model=list[api.Secret])
def list_secrets(caller: Reader, ctx: Ctx) -> Response:
    """One's own secrets and those of one's projects, of all projects for administrators; never their values."""
    return answer(store.list_secrets(ctx.db, caller))


@router.put("/secrets/{name}", response_model=api.Secret)
def set_secret(name: str, value: api.SecretValue, caller: Submitter, ctx: Ctx) -> Response:
    """Sets a secret of one's own; jobs that name it get the value that it has when they start."""
    return answer(store.set_secret(ctx.db, ctx.secret_keys, caller, name, value, ctx.now_us()))


@router.delete("/secrets/{name}", status_code=204)
def remove_secret(name: str, caller: Submitter, ctx: Ctx) -> None:
    """Removes a secret of one's own; waiting jobs that name it no longer start."""
    store.remove_secret(ctx.db, caller, name, ctx.now_us())


@router.put("/projects/{project}/secrets/{name}", response_model=api.Secret)
def set_project_secret(project: str, name: str, value: api.SecretValue, caller: Submitter, ctx: Ctx) -> Response:
    """Sets a secret of a project, for jobs that its members run in it."""
    return answer(store.set_secret(ctx.db, ctx.secret_keys, caller, name, value, ctx.now_us(), project))


@router.delete("/projects/{project}/secrets/{name}", status_code=204)
def remove_project_secret(project: str, name: str, caller: Submitter, ctx: Ctx) -> None:
    """Removes a secret of a project; waiting jobs that name it no longer start."""
    store.remove_secret(ctx.db, caller, name, ctx.now_us(), project)
