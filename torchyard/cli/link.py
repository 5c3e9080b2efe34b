"""``link``: public links to jobs."""

from typing import Annotated

import typer

from torchyard.cli import common


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(link)


def link(
    job: Annotated[str, typer.Argument(help="Number or id of a job.")],
    expires: Annotated[str, typer.Option(help="The link counts for so long, 90d at most.")] = "7d",
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke all links to the job instead.")] = False,
    json: common.Json = False,
) -> None:
    """Print a public link to a job.

    Whoever has it sees name, owner, state, times and metrics, and nothing else, without signing in. An administrator
    allows such links with TORCHYARD_SHARED_LINKS=1; there are none to jobs of private projects.
    """
    from torchyard.api import NewSharedLink

    if revoke:
        with common.connect() as client:
            client.revoke_links(job)
        common.note(f"no link to job {job} counts any more")
        return
    asked = common.checked(NewSharedLink, {"expires_in": expires})
    with common.connect() as client:
        made = client.share(job, asked)
    if json:
        common.print_json(made)
        return
    common.line(made.url)
    until = made.expires_at.astimezone().strftime("%Y-%m-%d %H:%M")
    common.note(f"for everybody who has it, until {until}; `yard link {job} --revoke` ends it sooner")
