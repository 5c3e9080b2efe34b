"""``token``, ``users`` and ``projects``."""

from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common

if TYPE_CHECKING:
    from torchyard.api import Project, Role, User

#: Who reads the jobs of a project beside their owners and administrators, by its visibility.
READERS = {"private": "owners", "project": "members", "everyone": "everyone"}
#: Who submits to a project beside its administrators.
SUBMITTERS = "Who may submit to it: everyone, or members alone; administrators always."
RESTARTS = "May its jobs that cannot be stopped be put back after a short trial, to start over: on or off."
VISIBILITY = "Who reads its jobs: private (owners), project (members) or everyone; administrators always."
ProjectName = Annotated[str, typer.Argument(metavar="PROJECT", help="The project's name.")]
UserName = Annotated[str, typer.Argument(metavar="USER", help="The user's name.")]
#: What a role allows, as the options say it.
ROLES = "administrator (everything), member (work of their own) or viewer (reads, changes nothing)"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    token = typer.Typer(help="Show, make, list, rotate and revoke tokens.", no_args_is_help=True, rich_markup_mode=None)
    token.command("show")(show)
    token.command("create")(create)
    token.command("ls")(ls)
    token.command("rotate")(rotate)
    token.command("revoke")(revoke)
    app.add_typer(token, name="token")
    people = typer.Typer(help="List, add, change and remove users.", invoke_without_command=True, rich_markup_mode=None)
    people.callback()(users)
    people.command("add")(add)
    people.command("set")(change)
    people.command("link")(link)
    people.command("remove")(remove)
    app.add_typer(people, name="users")
    work = typer.Typer(help="List, create and change projects.", invoke_without_command=True, rich_markup_mode=None)
    work.callback()(projects)
    work.command("create")(create_project)
    work.command("set")(change_project)
    members = typer.Typer(help="Add and remove members.", no_args_is_help=True, rich_markup_mode=None)
    members.command("add")(add_member)
    members.command("remove")(remove_member)
    work.add_typer(members, name="members")
    app.add_typer(work, name="projects")


def show(json: common.Json = False) -> None:
    """Print the token in use."""
    from torchyard.client.connection import find_token

    if json:
        common.print_json({"token": find_token()})
    else:
        common.line(find_token())


def create(
    name: Annotated[str, typer.Argument(help="What the token is for.")],
    scope: Annotated[list[str], typer.Option(help="read, submit, admin or node; may be repeated.")] = ["submit"],  # noqa: B006
    user: Annotated[str | None, typer.Option(help="Whose token it is (administrators).")] = None,
    node: Annotated[str | None, typer.Option(help="The node that a token of the scope node belongs to.")] = None,
    expires: Annotated[str | None, typer.Option(help="Ends after this long, such as 30d.")] = None,
    json: common.Json = False,
) -> None:
    """Make a token. Its secret is printed now and never again."""
    from torchyard.api import TokenRequest

    given = {"name": name, "scopes": scope, "user": user, "node": node, "expires_in": expires}
    request = common.checked(TokenRequest, given)
    with common.connect() as client:
        made = client.create_token(request)
    if json:
        common.print_json(made)
    else:
        common.line(made.secret)


def ls(
    everybody: Annotated[bool, typer.Option("--all", help="Everybody's (administrators).")] = False,
    json: common.Json = False,
) -> None:
    """List tokens, without their secrets."""
    with common.connect() as client:
        found, now = client.tokens(everybody=everybody), client.now()
    if json:
        common.print_json(found)
        return

    from torchyard.cli.format import ago

    with common.table("ID", "NAME", "USER", "SCOPES", "NODE", "USED", "EXPIRES") as table:
        for token in found:
            expires = token.expires_at.isoformat(timespec="minutes") if token.expires_at else "never"
            used = ago(token.last_used_at, now)
            table.add_row(token.id, token.name, token.user, " ".join(token.scopes), token.node or "", used, expires)


def rotate(
    token: Annotated[str, typer.Argument(help="The token's id, as `yard token ls` shows it.")],
    grace: Annotated[
        str | None, typer.Option(help="So long the old one still counts, such as 1h; else it ends.")
    ] = None,
    json: common.Json = False,
) -> None:
    """Replace a token by a new one, which counts at once. Its secret is printed now and never again."""
    from torchyard.api import TokenRotation

    asked = common.checked(TokenRotation, {"grace": grace})
    with common.connect() as client:
        made = client.rotate_token(token, asked)
    if json:
        common.print_json(made)
    else:
        common.line(made.secret)
        common.note(f"{token} {f'counts for another {grace}' if grace else 'has ended'}; the new one is {made.id}")
        if made.node is not None:
            common.note(f"node {made.node} needs it: in its node.token, unless it is the service's own machine")


def revoke(token: Annotated[str, typer.Argument(help="The token's id, as `yard token ls` shows it.")]) -> None:
    """Make a token invalid at once."""
    with common.connect() as client:
        client.revoke_token(token)


def users(context: typer.Context, json: common.Json = False) -> None:
    """List the users; `add`, `set` and `remove` change them."""
    if context.invoked_subcommand:
        return
    with common.connect() as client:
        found = client.users()
    if json:
        common.print_json(found)
        return
    with common.table("NAME", "ROLE", "UNIX USER", "SINCE", "") as table:
        for user in found:
            role = f"service account of {user.project}" if user.project else user.role
            left = "deactivated" if not user.active else "no UNIX account, so no jobs" if user.warning else ""
            table.add_row(user.name, role, user.unix_user or "", f"{user.created_at:%Y-%m-%d}", left)


def add(
    name: Annotated[str, typer.Argument(help="The user's name.")],
    admin: Annotated[bool, typer.Option("--admin", help="The role administrator.")] = False,
    role: Annotated[str | None, typer.Option(help=f"{ROLES}; else member.")] = None,
    service_account: Annotated[
        str | None,
        typer.Option(metavar="PROJECT", help="Makes it a service account: for programs, of this project alone."),
    ] = None,
    unix_user: Annotated[
        str | None, typer.Option(help="The account as which this user's jobs run where the worker runs as root.")
    ] = None,
    json: common.Json = False,
) -> None:
    """Add a user; `yard token create laptop --user NAME` then makes a token for them."""
    from torchyard.api import NewUser

    given = {"name": name, "admin": admin, "role": role, "unix_user": unix_user, "project": service_account}
    new = common.checked(NewUser, given)
    with common.connect() as client:
        made = client.create_user(new)
    if json:
        common.print_json(made)
    else:
        if made.warning:
            common.warn(made.warning)
        common.note(f"added {made.name}; make a token with: {_token_command(made, new.role)}")


def _token_command(user: "User", role: "Role | None") -> str:
    """Return the command that makes a token for a new user."""
    scope = " --scope read" if role == "viewer" else ""
    return f"yard token create {'ci' if user.project else 'laptop'} --user {user.name}{scope}"


def change(
    name: Annotated[str, typer.Argument(help="The user's name.")],
    admin: Annotated[bool | None, typer.Option("--admin/--no-admin", help="The role administrator, or member.")] = None,
    role: Annotated[str | None, typer.Option(help=f"{ROLES}.")] = None,
    unix_user: Annotated[str | None, typer.Option(help="The account as which their jobs run; none for none.")] = None,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="May use the box, or no more: as `yard users remove`.")
    ] = None,
    json: common.Json = False,
) -> None:
    """Change a user's rights or UNIX account (administrators)."""
    from torchyard.api.sharing import UserChanges

    given = {"admin": admin, "role": role, "unix_user": unix_user, "active": active}
    values = {field: None if value == "none" else value for field, value in given.items() if value is not None}
    with common.connect() as client:
        changed = client.change_user(name, common.checked(UserChanges, values))
    if json:
        common.print_json(changed)
    else:
        special = {"administrator": ", admin", "viewer": ", viewer"}.get(changed.role, "")
        common.note(f"{changed.name}: {'active' if changed.active else 'deactivated'}{special}")
        if active:
            common.note(f"tokens from before a removal stay ended: `yard users link {name}`, or `yard token create`")
        if changed.warning:
            common.warn(changed.warning)


def link(name: Annotated[str, typer.Argument(help="The user's name.")], json: common.Json = False) -> None:
    """Print a link by which a user signs in to the dashboard, once and within a day (administrators)."""
    with common.connect() as client:
        address = client.sign_in_link(name)
    if json:
        common.print_json({"url": address})
    else:
        common.line(address)


def remove(name: Annotated[str, typer.Argument(help="The user's name.")]) -> None:
    """End a user's tokens and sessions (administrators). Waiting jobs no longer start, running ones go on."""
    with common.connect() as client:
        client.delete_user(name)
    common.note(f"{name} is deactivated; jobs and usage stay, but what waits does not start")


def projects(context: typer.Context, json: common.Json = False) -> None:
    """List the projects that jobs are submitted to, who reads their jobs and who submits to them beside administrators.

    `create` adds one, `set` says who may read and submit, `members` adds and removes people.
    """
    if context.invoked_subcommand:
        return
    with common.connect() as client:
        found = client.projects()
    if json:
        common.print_json(found)
        return
    with common.table("NAME", "READ BY", "SUBMIT", "RESTARTS", "MEMBERS", "SINCE") as table:
        for project in found:
            members, since = " ".join(_members(project)), f"{project.created_at:%Y-%m-%d}"
            reads, restarts = READERS[project.visibility], "on" if project.restarts else "off"
            table.add_row(project.name, reads, project.submitters, restarts, members, since)


def _members(project: "Project") -> list[str]:
    """Return the members' names, with their roles where they are more or less than members."""
    roles = project.roles
    return [name if roles.get(name) == "member" else f"{name} ({roles.get(name)})" for name in project.members]


def create_project(
    name: Annotated[str, typer.Argument(help="The project's name.")],
    visibility: Annotated[str | None, typer.Option(help=VISIBILITY)] = None,
    submitters: Annotated[str, typer.Option(help=SUBMITTERS)] = "everyone",
    restarts: Annotated[str, typer.Option(metavar="on|off", help=RESTARTS)] = "on",
    json: common.Json = False,
) -> None:
    """Create a project (administrators); a spec's `project`, or `yard run --project`, then names it."""
    from torchyard.api import NewProject

    given = {"name": name, "visibility": visibility, "submitters": submitters, "restarts": restarts}
    new = common.checked(NewProject, given)
    with common.connect() as client:
        made = client.create_project(new)
    if json:
        common.print_json(made)
    else:
        common.note(f"created {made.name}; run in it with: yard run --project {made.name} -- python train.py")


def change_project(
    project: ProjectName,
    visibility: Annotated[str | None, typer.Option(help=f"{VISIBILITY} default: as the installation has it.")] = None,
    submitters: Annotated[str | None, typer.Option(help=SUBMITTERS)] = None,
    restarts: Annotated[str | None, typer.Option(metavar="on|off", help=RESTARTS)] = None,
    json: common.Json = False,
) -> None:
    """Set who reads and submits jobs of a project, and if they may start over (its administrators, or those of all)."""
    from torchyard.api import ProjectChanges

    values = {"visibility": visibility, "submitters": submitters, "restarts": restarts}
    given = {field: None if value == "default" else value for field, value in values.items() if value is not None}
    with common.connect() as client:
        changed = client.change_project(project, common.checked(ProjectChanges, given))
    if json:
        common.print_json(changed)
    else:
        readers, others = READERS[changed.visibility], f"{_who_submits(changed)}{_starts_over(changed)}"
        common.note(f"jobs in {changed.name} are read by: {readers}; {others}")


def _who_submits(project: "Project") -> str:
    return "only members submit to it" if project.submitters == "members" else "everyone submits to it"


def _starts_over(project: "Project") -> str:
    return "" if project.restarts else "; they never start over after a trial"


def add_member(
    project: ProjectName,
    user: UserName,
    role: Annotated[
        str | None, typer.Option(help=f"What they may do in it: {ROLES}; else member, or as it is.")
    ] = None,
) -> None:
    """Make a user a member of a project, or set their role in it (its administrators, or those of all).

    Members of any role may read the jobs in it if its visibility is project.
    """
    from torchyard.api import ProjectRole

    asked = None if role is None else common.checked(ProjectRole, {"role": role}).role
    with common.connect() as client:
        client.add_project_member(project, user, asked)
    common.note(f"{user} is {'a member' if asked in (None, 'member') else asked} of {project}")


def remove_member(project: ProjectName, user: UserName) -> None:
    """End a membership (the project's administrators, or those of all).

    From now on the user reads only their own jobs in the project, unless its visibility is everyone.
    """
    with common.connect() as client:
        client.remove_project_member(project, user)
    common.note(f"{user} is no member of {project} any more")
