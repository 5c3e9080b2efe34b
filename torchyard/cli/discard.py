"""``discard``."""

import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common, jobs

if TYPE_CHECKING:
    from torchyard.api import Job, RemovedCode
    from torchyard.client.client import Client


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(discard)


def discard(
    refs: Annotated[list[str] | None, typer.Argument(metavar="JOB", help="Numbers or ids of jobs.")] = None,
    older_than: Annotated[
        str | None, typer.Option(help="All that ended so long ago, such as 90d, and do not have the tag keep.")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", "-u", help="Whose old jobs; yours if nobody is named.")] = None,
    everybody: Annotated[bool, typer.Option("--everybody", help="Everybody's old jobs.")] = False,
    code: Annotated[
        bool, typer.Option("--code", help="What your discarded jobs ran, which cannot be run again then; no jobs.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: common.Json = False,
) -> None:
    """Take away logs, metrics, checkpoints and outputs of jobs that have ended, for good.

    Spec, code, events, GPU time and last metrics stay, so the jobs can be run again. Code of yours that no
    job is on goes first.
    """
    from torchyard.exceptions import TorchYardError

    if json and not yes:
        raise TorchYardError("nothing was discarded: --json asks nothing, so it goes with --yes")
    if code:
        if refs or older_than is not None or user or everybody:
            raise TorchYardError("--code goes alone: it takes what all your discarded jobs ran, and no other files")
        _discard_code(yes=yes, json=json)
    else:
        found, now = _found(refs or [], older_than, user, everybody=everybody)
        _discard(found, now, yes=yes, json=json)


def _found(
    refs: list[str], older_than: str | None, user: str | None, *, everybody: bool
) -> "tuple[list[Job], datetime]":
    """The jobs that are named, or those that are old enough; and the time."""
    from torchyard.exceptions import TorchYardError

    if (older_than is None) == (not refs):
        raise TorchYardError("which jobs? Name them, or say how old they are: `yard discard --older-than 90d`")
    if older_than is None and (user or everybody):
        raise TorchYardError("--user and --everybody go with --older-than: jobs that are named are these jobs")
    with common.connect() as client:
        if older_than is None:
            found = [client.job(ref) for ref in refs]
        else:
            found = _old(client, older_than, None if everybody else user or client.settings().user.name)
        return found, client.now()


def _discard(found: "list[Job]", now: datetime, *, yes: bool, json: bool) -> None:
    if not found and json:
        common.print_json([])
    elif not found:
        common.note("no such jobs")
    elif yes or _asked(found, now):
        with common.connect() as client:
            _tell(client.prune_snapshots())
        jobs.act([job.id for job in found], json, lambda client, job: client.discard(job))


def _discard_code(*, yes: bool, json: bool) -> None:
    from torchyard.exceptions import TorchYardError

    if not yes and not sys.stdin.isatty():
        raise TorchYardError("nothing was discarded: with --yes, the code of your discarded jobs is gone for good")
    if yes or typer.confirm("Discard the code of your discarded jobs, so that they cannot be run again?"):
        with common.connect() as client:
            removed = client.prune_snapshots(discarded=True)
        if json:
            common.print_json(removed)
        elif removed.snapshots:
            _tell(removed)
        else:
            common.note("no such code")


def _tell(removed: "RemovedCode") -> None:
    from torchyard.quantities import format_size

    if removed.snapshots:
        many = "snapshot" if removed.snapshots == 1 else "snapshots"
        common.note(f"{removed.snapshots} unused {many} of code removed ({format_size(removed.size)})")


def _old(client: "Client", older_than: str, user: str | None) -> "list[Job]":
    from torchyard.exceptions import SpecError
    from torchyard.quantities import parse_duration
    from torchyard.states import JOB_FINAL

    try:
        age = timedelta(seconds=parse_duration(older_than))
    except ValueError as error:
        raise SpecError(f"--older-than: {error}") from error
    before = common.service_now(client) - age
    return worth_discarding(client.jobs(state=sorted(JOB_FINAL), user=user), before)


def worth_discarding(jobs: "Iterable[Job]", before: datetime) -> "list[Job]":
    """Those that ended before, have files still, and are not to be kept."""
    from torchyard.spec import KEEP

    return [
        job for job in jobs if job.ended_at and job.ended_at < before and not job.discarded_at and KEEP not in job.tags
    ]


def _asked(found: "list[Job]", now: datetime) -> bool:
    from torchyard.cli import format as shown
    from torchyard.exceptions import TorchYardError
    from torchyard.quantities import format_size

    with common.table("JOB", "NAME", "USER", "STATE", "ENDED", "FILES") as table:
        for job in found:
            ended, size = shown.ago(job.ended_at, now), format_size(job.storage.total)
            table.add_row(str(job.number), job.name, job.user, shown.state(job), ended, size)
    total = format_size(sum(job.storage.total for job in found))
    if not sys.stdin.isatty():
        raise TorchYardError(f"nothing was discarded: with --yes, these {total} are gone for good")
    return typer.confirm(f"Discard {total} of {len(found)} {'job' if len(found) == 1 else 'jobs'} for good?")
