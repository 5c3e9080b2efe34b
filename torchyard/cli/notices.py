"""``pause``, ``resume``, ``announce``: what administrators tell everybody, and whether jobs start."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common, moments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchyard.api import Notices
    from torchyard.client.client import Client

Message = Annotated[str, typer.Argument(help="Why, for everybody to read.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (pause, resume, announce):
        app.command()(command)


def pause(message: Message = "", json: common.Json = False) -> None:
    """Let no job start, until `yard resume`; those that run go on. Restarts change nothing of it."""
    with common.connect() as client:
        _tell(client.pause(message), json)


def resume(json: common.Json = False) -> None:
    """Let jobs start again after `yard pause`."""
    with common.connect() as client:
        found = client.resume_queue()
    _tell(found, json, otherwise="jobs may start")


def announce(
    message: Annotated[
        str | None, typer.Argument(help="What everybody is told; without it what they are told now.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it goes by itself: 18:00, 2h, or 2026-11-23T18:00.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Take it away.")] = False,
    json: common.Json = False,
) -> None:
    """Tell everybody something, in the dashboard and beside their commands: `yard announce "maintenance at 18:00"`."""
    from torchyard.api import NewAnnouncement

    if (clear and message is not None) or (until is not None and message is None):
        raise typer.BadParameter("give a message (with --until, if you like), or --clear")
    ends = None if until is None else moments.future("--until", until, datetime.now().astimezone())
    with common.connect() as client:
        if message is not None:
            found = client.announce(common.checked(NewAnnouncement, {"message": message, "until": ends}))
        elif clear:
            found = client.withdraw_announcement()
        else:
            found = client.notices()
    _tell(found, json, otherwise="nothing is announced")


def show(client: "Client") -> None:
    """Print what administrators tell everybody beside a command's own output; an older service tells nothing."""
    from torchyard.exceptions import NotFoundError

    try:
        found = client.notices()
    except NotFoundError:
        return
    for line in lines(found):
        common.warn(line)


def lines(found: "Notices") -> "Iterator[str]":
    """Yield the notices, one line each."""
    from torchyard.cli import format as shown

    if found.pause is not None:
        why = f": {found.pause.message}" if found.pause.message else ""
        since = shown.ago(found.pause.since, shown.now())
        yield f"the queue is paused by {found.pause.user} ({since}){why}; running jobs go on"
    if found.announcement is not None:
        until = found.announcement.until
        ends = f" (until {_when(until)})" if until is not None else ""
        yield f"{found.announcement.user} announces: {found.announcement.message}{ends}"


def _when(at: datetime) -> str:
    here = at.astimezone()
    soon = here - datetime.now().astimezone() < timedelta(days=1)
    return f"{here:%H:%M}" if soon else f"{here:%Y-%m-%d %H:%M}"


def _tell(found: "Notices", json: bool, otherwise: str = "") -> None:
    if json:
        common.print_json(found)
        return
    told = list(lines(found))
    for line in told:
        common.line(line)
    if not told:
        common.note(otherwise)
