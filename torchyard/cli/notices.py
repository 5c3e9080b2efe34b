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
        _tell(client, client.pause(message), json)


def resume(json: common.Json = False) -> None:
    """Let jobs start again after `yard pause`."""
    with common.connect() as client:
        _tell(client, client.resume_queue(), json, otherwise="jobs may start")


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
    with common.connect() as client:
        ends = None if until is None else moments.future("--until", until, common.service_now(client))
        if message is not None:
            found = client.announce(common.checked(NewAnnouncement, {"message": message, "until": ends}))
        elif clear:
            found = client.withdraw_announcement()
        else:
            found = client.notices()
        _tell(client, found, json, otherwise="nothing is announced")


def show(client: "Client") -> None:
    """Print what administrators tell everybody beside a command's own output; an older service tells nothing."""
    from torchyard.exceptions import NotFoundError

    try:
        found = client.notices()
    except NotFoundError:
        return
    for line in lines(found, client.now()):
        common.warn(line)


def lines(found: "Notices", now: datetime) -> "Iterator[str]":
    """Yield the notices, one line each."""
    from torchyard.cli import format as shown

    if found.pause is not None:
        why = f": {found.pause.message}" if found.pause.message else ""
        since = shown.ago(found.pause.since, now)
        yield f"the queue is paused by {found.pause.user} ({since}){why}; running jobs go on"
    if found.announcement is not None:
        until = found.announcement.until
        ends = f" (until {_when(until, now)})" if until is not None else ""
        yield f"{found.announcement.user} announces: {found.announcement.message}{ends}"


def _when(at: datetime, now: datetime) -> str:
    here = at.astimezone()
    return f"{here:%H:%M}" if at - now < timedelta(days=1) else f"{here:%Y-%m-%d %H:%M}"


def _tell(client: "Client", found: "Notices", json: bool, otherwise: str = "") -> None:
    if json:
        common.print_json(found)
        return
    told = list(lines(found, client.now()))
    for line in told:
        common.line(line)
    if not told:
        common.note(otherwise)
