"""``audit``: what people have changed, and what was refused."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchyard.cli import common, moments

if TYPE_CHECKING:
    from datetime import datetime

    from torchyard.client.client import Client


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
    with common.connect() as client:
        span = {"since": _past(client, "--since", since), "until": _past(client, "--until", until)}
        which: dict[str, Any] = {"user": user, "action": action, "refused": refused, **span}
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


def _past(client: "Client", option: str, text: str | None) -> "datetime | None":
    return None if text is None else moments.past(option, text, common.service_now(client))
