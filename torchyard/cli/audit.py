"""``audit``: what people have changed, and what was refused."""

from typing import Annotated, Any

import typer

from torchyard.cli import common


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(
    user: Annotated[str | None, typer.Option(help="A user's name; (unknown) for requests without a token.")] = None,
    action: Annotated[str | None, typer.Option(help="Such as job.cancel, or job for all of jobs.")] = None,
    since: Annotated[str | None, typer.Option(help="10m ago, at 14:05, or 2026-11-23T09:00.")] = None,
    until: Annotated[str | None, typer.Option(help="The same, for the end.")] = None,
    refused: Annotated[bool | None, typer.Option("--refused/--done", help="Only refusals, or only changes.")] = None,
    limit: Annotated[int, typer.Option(help="So many entries, the newest.", min=1, max=100_000)] = 50,
    csv: Annotated[bool, typer.Option("--csv", help="Print all that fit as a table for programs.")] = False,
    json: common.Json = False,
) -> None:
    """Show who has changed what, and what was refused, the newest first (administrators)."""
    which = _filters(user, action, since, until, refused=refused)
    with common.connect() as client:
        if csv:
            common.line(client.audit_csv(**which), end="")
            return
        found = client.audit(limit=limit, **which)
    if json:
        common.print_json(found)
        return
    with common.table("WHEN", "USER", "FROM", "ACTION", "SUBJECT", "RESULT") as table:
        for entry in found:
            result = entry.result if entry.status is None else f"{entry.result} ({entry.status})"
            times = f" {entry.times} times" if entry.times > 1 else ""
            at = f"{entry.at.astimezone():%Y-%m-%d %H:%M:%S}"
            table.add_row(at, entry.user, entry.address or "", entry.action, entry.subject, result + times)


def _filters(
    user: str | None, action: str | None, since: str | None, until: str | None, *, refused: bool | None
) -> dict[str, Any]:
    from datetime import UTC, datetime

    from torchyard.cli import moments

    now = datetime.now(UTC)
    return {
        "user": user,
        "action": action,
        "since": None if since is None else moments.past("--since", since, now),
        "until": None if until is None else moments.past("--until", until, now),
        "refused": refused,
    }
