"""``ls``, ``show``, ``cancel``, ``rerun``, ``hold``, ``release``, ``checkpoint``, ``wait``."""

import shlex
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchyard.cli import common, notices, sweeps
from torchyard.cli.terminal import styled

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from torchyard.api import Attempt, Event, Job, JobEnvironment, StartTiming
    from torchyard.client.client import Client

#: Seconds for which `cancel` waits to say what a job saved.
STOPPED_S = 5.0
JobRefs = Annotated[list[str], typer.Argument(metavar="JOB", help="Numbers or ids of jobs.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (ls, show, wait, cancel, rerun, hold, release, checkpoint):
        app.command()(command)


def ls(
    state: Annotated[
        list[str] | None, typer.Option("--state", "-s", help="Only jobs in this state; may be repeated.")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", "-u", help="Only this user's jobs.")] = None,
    project: Annotated[str | None, typer.Option(help="Only this project's jobs.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only jobs with this tag; may be repeated.")] = None,
    q: Annotated[str | None, typer.Option("--query", "-q", help="Only jobs whose name contains this.")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Only jobs whose newest value is so, such as 'val/accuracy>0.9', or whose largest or smallest is: "
            "'max:val/accuracy>0.9', 'min:val/loss<0.3'; may be repeated."
        ),
    ] = None,
    trials: Annotated[bool, typer.Option("--trials", help="Each job of a sweep, instead of a row for all.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many, the newest.", min=1)] = 30,
    json: common.Json = False,
) -> None:
    """List sweeps, then jobs: running, then queued, then ended."""
    with common.connect() as client:
        filters: dict[str, Any] = {
            "state": state,
            "user": user,
            "project": project,
            "tag": tag,
            "metric": metric,
            "q": q,
        }
        if json:
            common.print_json(client.jobs(limit=limit, **filters))
            return
        found = list(client.jobs(limit=limit, trials=None if trials else "false", **filters))
        swept = [] if trials else list(client.sweeps(limit=limit, **filters))
        waiting = {entry.job: entry for entry in client.queue()} if found else {}
        notices.show(client)
    if not found and not swept:
        common.note("no jobs: `yard run -- python train.py` submits one")
        return

    from torchyard.cli import format as shown

    columns = ("JOB", "NAME", "USER", "STATE", "PRIO", "GPUS", "WHERE", "TIME", "")
    with common.table(*columns, narrow=("JOB", "NAME", "STATE", "TIME", "")) as table:
        places = {job: entry.position for job, entry in waiting.items()}
        for group in swept:
            standing = sweeps.standing(group)
            table.add_row(str(group.number), group.name, group.user, styled("sweep", "dim"), "", "", "", "", standing)
        for job in sorted(found, key=lambda job: _order(job, places)):
            entry = waiting.get(job.id)
            told = styled(shown.message(entry.reason), "dim") if entry else shown.status(job)
            time = shown.elapsed(job, client.now())
            where = shown.devices(job.devices)
            state_, priority = shown.state(job), job.priority.value
            table.add_row(str(job.number), job.name, job.user, state_, priority, str(job.gpus), where, time, told)


def _order(job: "Job", places: dict[str, int]) -> tuple[int, int]:
    if job.id in places:
        return 1, places[job.id]
    return (2 if job.ended_at else 0), -job.number


def show(
    job: common.JobRef,
    timing: Annotated[
        bool, typer.Option("--timing", help="How its start went, from the request to the first step.")
    ] = False,
    environment: Annotated[
        bool, typer.Option("--environment", help="Python and the packages that were installed for it.")
    ] = False,
    json: common.Json = False,
) -> None:
    """Show a job: its work, its history, its error."""
    with common.connect() as client:
        if environment:
            _show_environment(client.environment(job), json)
            return
        if timing:
            _show_timing(client.timing(job), json)
            return
        found = client.job(job)
        attempts, events = client.attempts(found.id), client.events(found.id)
    if json:
        common.print_json(
            {
                **found.model_dump(mode="json"),
                "attempts": [each.model_dump(mode="json") for each in attempts],
                "events": [each.model_dump(mode="json") for each in events],
            }
        )
        return
    _print_facts(found, attempts, client.now())
    _print_attempts(attempts)
    _print_events(events, client.now())
    print_error(found)


def _show_environment(found: "JobEnvironment", json: bool) -> None:
    from torchyard.cli import environment

    if json:
        common.print_json(found)
    else:
        environment.put(found)


def _show_timing(starts: "list[StartTiming]", json: bool) -> None:
    from torchyard.cli import timing

    if json:
        common.print_json(starts)
        return
    if not starts:
        common.note("it has not been assigned to a node yet")
    for each in starts:
        timing.put(each)


def _print_facts(job: "Job", attempts: "list[Attempt]", at: "datetime") -> None:
    from rich.table import Table

    from torchyard.cli import format as shown

    work = job.spec.get("command") or job.spec.get("recipe") or {}
    facts: dict[str, str | Text] = {
        "state": shown.state(job),
        "user": f"{job.user}, project {job.project}, priority {job.priority.value}",
        "work": shlex.join(work) if isinstance(work, list) else " ".join(f"{k}={v}" for k, v in work.items()),
        "launcher": job.spec.get("launcher", "") if job.spec.get("command") else "",
        "where": shown.devices(job.devices),
        "ranks": shown.ranks(attempts[-1].members) if attempts else "",
        "time": shown.elapsed(job, at),
        "memory": shown.memory(attempts, job.spec.get("resources", {}).get("memory")),
        "gpu memory": shown.gpu_memory(attempts, job.spec.get("resources", {})),
        "progress": shown.progress(job, source=True),
        "latest": shown.latest(job.latest),
        "lost": shown.lost(attempts),
        "storage": _storage(job),
        "tags": " ".join(job.tags),
        "rerun of": job.rerun_of or "",
        "not exact": job.inexact or "",
        "not saved": job.unsaved or "",
    }
    common.put((f"{job.number}  {job.name}", "bold"), "  ", (job.id, "dim"))
    grid = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value:
            grid.add_row(styled(name, "dim"), value)
    common.console().print(grid)


def _storage(job: "Job") -> str:
    from torchyard.quantities import format_size

    if job.discarded_at:
        return f"discarded on {job.discarded_at.astimezone():%Y-%m-%d}"
    checkpoints, outputs, logs = map(format_size, (job.storage.checkpoints, job.storage.outputs, job.storage.logs))
    return f"checkpoints {checkpoints}, outputs {outputs}, logs {logs}"


def _print_attempts(attempts: "list[Attempt]") -> None:
    if len(attempts) < 2:
        return
    with common.table("ATTEMPT", "STATE", "NODE", "FROM STEP", "EXIT") as table:
        for each in attempts:
            resumed = "" if each.resumed_from_step is None else str(each.resumed_from_step)
            ended = f"signal {each.signal}" if each.signal else "" if each.exit_code is None else str(each.exit_code)
            nodes = " ".join(member.node for member in each.members)
            table.add_row(str(each.number), each.state.value, nodes, resumed, ended)


def _print_events(events: "Iterable[Event]", now: "datetime") -> None:
    """Print what happened, with the date unless all of it was today."""
    told = list(events)
    days = {event.at.astimezone().date() for event in told}
    form = "%H:%M:%S" if days <= {now.astimezone().date()} else "%Y-%m-%d %H:%M:%S"
    for event in told:
        actor = f" ({event.actor})" if event.actor else ""
        at = event.at.astimezone().strftime(form)
        common.put((at, "dim"), f"  {event.kind:<14} {event.message}", (actor, "dim"))


def print_error(job: "Job", *, with_tail: bool = True, with_traceback: bool = True) -> None:
    """Reason why a job failed, with the failing rank's own traceback unless the log with it was just shown.

    Where the log has no traceback the service gives its last lines; `with_tail` shows those too.
    """
    if job.error is None:
        return
    error = job.error
    rank = "" if error.rank is None else f" on rank {error.rank}"
    common.put((f"failed{rank}:", "bold red"), f" {error.message}")
    if error.traceback and (with_traceback if "Traceback" in error.traceback else with_tail):
        common.put((error.traceback.rstrip(), "red"))


def wait(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Number or id of a job, or of a sweep.")],
    timeout: Annotated[str | None, typer.Option(help="Give up after this long, such as 10m.")] = None,
    json: common.Json = False,
) -> None:
    """Wait for a job's end, or a sweep's; the exit code is the job's, of a sweep 1 if a trial has failed.

    130 means cancelled, 124 out of time, 125 that waiting itself failed.
    """
    from torchyard.exceptions import NotFoundError, TorchYardError

    with common.connect(patient=True) as client:
        try:
            found = client.wait(job, timeout_s=_seconds(timeout))
        except NotFoundError:
            if not sweeps.exists(client, job):
                raise
            sweeps.wait_and_tell(client, job, timeout_s=_seconds(timeout), json=json)
        except TimeoutError as error:
            raise TorchYardError(str(error)) from error
    if json:
        common.print_json(found)
    else:
        common.note(f"job {found.number} {found.state.value}")
    raise typer.Exit(common.exit_code(found))


def _seconds(text: str | None) -> float | None:
    from torchyard.exceptions import SpecError
    from torchyard.quantities import parse_duration

    try:
        return None if text is None else float(parse_duration(text))
    except ValueError as error:
        raise SpecError(f"--timeout: {error}") from error


def cancel(jobs: JobRefs, json: common.Json = False) -> None:
    """Ask jobs to save their work and stop."""
    act(jobs, json, lambda client, job: client.cancel(job), then=None if json else _tell_stopped)


def _tell_stopped(client: "Client", job: "Job") -> None:
    """Wait a little for a job that is being stopped, to say what it saved."""
    if job.stop is None or job.ended_at is not None:
        return
    try:
        ended = client.wait(job.id, timeout_s=STOPPED_S)
    except TimeoutError:
        common.note(f"job {job.number} has not ended yet: it may save its work first (`yard show {job.number}`)")
        return
    common.note(f"job {job.number}: {end_told(client, ended)}")


def end_told(client: "Client", job: "Job") -> str:
    """Message of the event that ended a job; others may follow, as a checkpoint's that came after it."""
    return next((each.message for each in reversed(client.events(job.id)) if each.kind == job.state.value), "")


def hold(jobs: JobRefs, json: common.Json = False) -> None:
    """Keep waiting jobs from starting."""
    act(jobs, json, lambda client, job: client.hold(job))


def release(jobs: JobRefs, json: common.Json = False) -> None:
    """Let held jobs start."""
    act(jobs, json, lambda client, job: client.release(job))


def checkpoint(jobs: JobRefs, json: common.Json = False) -> None:
    """Ask running jobs for a checkpoint now."""
    act(jobs, json, lambda client, job: client.checkpoint(job))


def act(
    jobs: list[str],
    json: bool,
    do: "Callable[[Client, str], Job]",
    then: "Callable[[Client, Job], None] | None" = None,
) -> None:
    """Do it to each job; one that refuses spares none of the others, and the exit code tells of it.

    `then` follows for each job that did not refuse, once all were told.
    """
    from torchyard.exceptions import RefusedError

    done, refused = [], False
    with common.connect() as client:
        for each in jobs:
            try:
                done.append(do(client, each))
            except RefusedError as error:
                common.note(f"yard: {error}")
                refused = True
                continue
            if not json:
                _print_acted(done[-1])
        if then is not None:
            for job in done:
                then(client, job)
    if json:
        common.print_json(done)
    if refused:
        raise typer.Exit(1)


def _print_acted(job: "Job") -> None:
    stop = f", asked to stop ({job.stop.value})" if job.stop and not job.ended_at else ""
    held = ", held" if job.held else ""
    gone = ", files discarded" if job.discarded_at else ""
    common.line(f"job {job.number} {job.state.value}{held}{stop}{gone}")


def rerun(
    job: common.JobRef,
    from_checkpoint: Annotated[
        str, typer.Option("--from", help="Where to go on: a checkpoint's id, latest, best, or start.")
    ] = "auto",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change a field, such as recipe.epochs=10; may be repeated.")
    ] = None,
    json: common.Json = False,
) -> None:
    """Submit a job again, as a new one.

    Goes on from the newest checkpoint, unless the job has succeeded or has none.
    """
    from torchyard.submission.drafts import override

    changes: dict[str, Any] = {}
    for each in set_ or ():
        override(changes, each)
    with common.connect() as client:
        made = client.rerun(
            job, from_checkpoint=None if from_checkpoint == "start" else from_checkpoint, changes=changes
        )
    if json:
        common.print_json(made)
    else:
        common.line(made.number)
