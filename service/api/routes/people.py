"""``/users``, ``/tokens``, ``/projects``, ``/audit`` and ``/settings``."""

from importlib.metadata import version
from typing import Annotated, Literal

from fastapi import Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from service.api.answers import CSV_RESPONSE, answer
from service.api.auth import context, requires
from service.api.routes.filters import LIMIT, Cursor, Format
from service.api.routes.refs import ProjectPath
from service.api.routes.router import api_router
from service.context import Context
from service.identity import audit, projects, refusals, sessions, tokens, users
from service.identity.callers import Caller
from torchyard import api
from torchyard.api.sharing import UserChanges

router = api_router("people")

Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]
#: Whoever may submit; that they administer the project is asked of it.
Submitter = Annotated[Caller, requires("submit")]
Admin = Annotated[Caller, requires("admin")]
UserPath = Annotated[str, Path(description="Name of the user.")]
TokenPath = Annotated[str, Path(description="Id of the token.")]


@router.get("/settings", response_model=api.Settings)
def settings(caller: Reader, ctx: Ctx) -> Response:
    """Show the installation, and who is looking."""
    return answer(
        api.Settings(
            version=version("torchyard"),
            installation=ctx.installation,
            user=users.own_user(ctx.db, caller),
            scopes=sorted(caller.scopes),
            keep_ended_s=ctx.settings.keep_ended_s,
            roles=dict(caller.roles),
            closed_projects=projects.closed_projects(ctx.db, caller),
            shared_links=ctx.settings.shared_links,
        )
    )


@router.get("/users", response_model=list[api.User])
def list_users(caller: Reader, ctx: Ctx) -> Response:
    """List all users, by name. Administrators see when they were last seen."""
    return answer(users.list_users(ctx.db, caller))


@router.post("/users", status_code=201, response_model=api.User)
def create_user(new: api.NewUser, caller: Admin, ctx: Ctx) -> Response:
    """Add a user, or with `project` a service account. A token for them is made with ``POST /tokens``."""
    return answer(users.create_user(ctx.db, caller, new, ctx.now_us()), status=201)


@router.patch("/users/{name}", response_model=api.User)
def change_user(request: Request, name: UserPath, changes: UserChanges, caller: Admin, ctx: Ctx) -> Response:
    """Change rights or UNIX account of a user. `active: false` ends their tokens and sessions at once."""
    return answer(users.change_user(ctx.db, request.app.state.tokens, caller, name, changes, ctx.now_us()))


@router.delete("/users/{name}", status_code=204)
def delete_user(request: Request, name: UserPath, caller: Admin, ctx: Ctx) -> None:
    """Deactivate a user: tokens and sessions end. The name, usage and jobs stay; those that wait or run go on."""
    users.deactivate_user(ctx.db, request.app.state.tokens, caller, name, ctx.now_us())


@router.post("/users/{name}/sign-in-codes", status_code=201, response_model=api.SignInCode)
def make_sign_in_code(name: UserPath, caller: Admin, ctx: Ctx) -> Response:
    """Make a code for a link by which a user signs in without a token. It counts once and for a day."""
    made = sessions.make_link_code(ctx.db, caller, name, ctx.now_us())
    return answer(made, status=201, headers={"Cache-Control": "no-store"})


@router.get("/tokens", response_model=list[api.Token])
def list_tokens(
    caller: Reader,
    ctx: Ctx,
    everybody: Annotated[bool, Query(alias="all", description="Everybody's, for administrators.")] = False,
) -> Response:
    """List the tokens and sessions that count. One's own, or with `all`, for administrators, everybody's."""
    listed = tokens.all_tokens if everybody else tokens.own_tokens
    return answer(listed(ctx.db, caller, ctx.now_us()))


@router.post("/tokens", status_code=201, response_model=api.NewToken)
def create_token(asked: api.TokenRequest, caller: Reader, ctx: Ctx) -> Response:
    """Make a token, no mightier than the one in use. Only this answer has its secret."""
    made = tokens.create_token(ctx.db, caller, asked, ctx.now_us())
    return answer(made, status=201, headers={"Cache-Control": "no-store"})


@router.delete("/tokens/{token}", status_code=204)
def revoke_token(request: Request, token: TokenPath, caller: Reader, ctx: Ctx) -> None:
    """Revoke a token. It ends at once, with the sessions that it has opened."""
    tokens.revoke(ctx.db, request.app.state.tokens, caller, token, ctx.now_us())
    ctx.broker_accounts.keep(tokens.node_tokens(ctx.db, ctx.now_us()))


@router.post("/tokens/{token}/rotate", status_code=201, response_model=api.NewToken)
def rotate_token(
    request: Request, token: TokenPath, caller: Reader, ctx: Ctx, asked: api.TokenRotation | None = None
) -> Response:
    """Replace a token by a new one, which counts at once. The old one ends now, or after `grace`."""
    asked = asked or api.TokenRotation()
    made = tokens.rotate(ctx.db, request.app.state.tokens, caller, token, asked, ctx.now_us())
    return answer(made, status=201, headers={"Cache-Control": "no-store"})


@router.get("/projects", response_model=list[api.Project], dependencies=[requires("read")])
def list_projects(ctx: Ctx) -> Response:
    """List all projects, by name. With who may read their jobs and submit to them."""
    return answer(projects.list_projects(ctx.db, ctx.settings.visibility))


@router.post("/projects", status_code=201, response_model=api.Project)
def create_project(request: Request, new: api.NewProject, caller: Admin, ctx: Ctx) -> Response:
    """Add a project."""
    cache, default = request.app.state.tokens, ctx.settings.visibility
    return answer(projects.create_project(ctx.db, cache, caller, new, default, ctx.now_us()), status=201)


@router.patch("/projects/{name}", response_model=api.Project)
def change_project(
    request: Request, name: ProjectPath, changes: api.ProjectChanges, caller: Submitter, ctx: Ctx
) -> Response:
    """Change who may read a project's jobs and who submits to it. Owners and administrators always read them."""
    cache, default = request.app.state.tokens, ctx.settings.visibility
    return answer(projects.change_project(ctx.db, cache, caller, name, changes, default, ctx.now_us()))


@router.put("/projects/{name}/members/{user}", status_code=204)
def add_project_member(
    request: Request,
    name: ProjectPath,
    user: UserPath,
    caller: Submitter,
    ctx: Ctx,
    asked: api.ProjectRole | None = None,
) -> None:
    """Make a user a member of a project, or set a member's role. Asking twice is fine."""
    projects.add_member(ctx.db, request.app.state.tokens, caller, name, user, asked, ctx.now_us())


@router.delete("/projects/{name}/members/{user}", status_code=204)
def remove_project_member(request: Request, name: ProjectPath, user: UserPath, caller: Submitter, ctx: Ctx) -> None:
    """End a membership. What only it allowed to read is no longer answered, streams under way end."""
    projects.remove_member(ctx.db, request.app.state.tokens, caller, name, user, ctx.now_us())


def audit_filter(
    user: Annotated[str | None, Query(description="A user's name; (unknown) for requests without a token.")] = None,
    action: Annotated[str | None, Query(description="Such as job.cancel, or job for all of jobs.")] = None,
    since: Annotated[AwareDatetime | None, Query(description="The first moment, with its time zone.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="The moment after the last one.")] = None,
    result: Annotated[Literal["done", "refused"] | None, Query(description="Changes, or refusals.")] = None,
) -> audit.AuditFilter:
    """Read the filter of entries."""
    refused = None if result is None else result == "refused"
    return audit.AuditFilter(user=user, action=action, since=since, until=until, refused=refused)


@router.get("/audit", response_model=api.Page[api.AuditEntry], responses=CSV_RESPONSE, dependencies=[requires("admin")])
def list_audit(
    request: Request,
    ctx: Ctx,
    which: Annotated[audit.AuditFilter, Depends(audit_filter)],
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=500, description=LIMIT)] = 100,
    format: Format = "json",  # noqa: A002  the parameter's name
) -> Response:
    """List what was changed and what was refused, the newest first. As `csv` all of it, on one page."""
    refusals.flush(ctx.db, request.app.state.refusals)
    if format == "csv":
        return StreamingResponse(audit.as_csv(ctx.db, which), media_type="text/csv; charset=utf-8")
    return answer(audit.page(ctx.db, which, cursor, limit))
