"""``why``, ``queue`` and ``change``: who waits for what, until when, and what would help."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchyard.cli import common, notices
from torchyard.cli.terminal import styled

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from torchyard.api import Calibration, QueueEntry, Why


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (why, queue, change):
        app.command()(command)


def why(
    job: Annotated[
        str | None, typer.Argument(metavar="JOB", help="Its number or id; without one: why devices are idle.")
    ] = None,
    json: common.Json = False,
) -> None:
    """Say why a job waits, until when, and what would start it now; or why it runs where it does, or stopped.

    Without a job: why devices are idle, for which job, until when, and which jobs cannot be stopped for it.
    """
    if job is None:
        _why_idle(json=json)
        return
    with common.connect() as client:
        found, now = client.why(job), client.now()
    if json:
        common.print_json(found)
        return
    _print_why(found, now)


def _why_idle(*, json: bool) -> None:
    from torchyard.cli.box import idle_words

    with common.connect() as client:
        found = client.idle()
        nodes = {node.name: node for node in client.nodes()} if found and not json else {}
    if json:
        common.print_json(found)
        return
    for each in found:
        if each.node in nodes:
            common.put((each.node, "bold"), f" {idle_words(each, nodes[each.node])}")
    if not found:
        common.note("no device is idle")


def _print_why(found: "Why", now: "datetime") -> None:
    from torchyard.cli.format import message

    common.put((message(found.summary), "bold"))
    for reason in found.reasons:
        if reason.message not in found.summary:
            common.put(f"  {message(reason.message)}")
    for words, p50, p90 in (
        ("starts", found.expected_start_at, found.expected_start_p90_at),
        ("ends", found.expected_end_at, found.expected_end_p90_at),
    ):
        if p50 is not None:
            common.put(f"  expected: {words} {_in(p50, now)}{f', nine times of ten {_in(p90, now)}' if p90 else ''}")
    if found.alternatives:
        common.put("\nWhat would start it:")
    for each in found.alternatives:
        common.put((f"  {message(each.message)}", "green"))
        common.put((f"      {each.command}", "dim"))


def _in(at: "datetime", now: "datetime") -> str:
    """``in 2h5m (14:30)``, in local time; what is overdue is expected ``now``."""
    from torchyard.quantities import format_duration

    left = (at - now).total_seconds()
    if left < 60:
        return "within a minute" if left > 0 else "now"
    return f"in {format_duration(60 * round(left / 60))} ({at.astimezone():%a %H:%M})"


def queue(
    calibration: Annotated[
        bool, typer.Option("--calibration", help="What forecasts of running times turned out to be worth.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many jobs, the first.", min=1)] = 30,
    json: common.Json = False,
) -> None:
    """List the jobs that wait, in their order, with what each waits for and when it starts."""
    with common.connect() as client:
        worth = client.calibration() if calibration else None
        entries = [] if calibration else client.queue(limit=limit)
        if not json:
            notices.show(client)
        now = client.now()
    if json:
        common.print_json(worth if worth is not None else entries)
    elif worth is not None:
        _print_calibration(worth)
    elif entries:
        _print_queue(entries, now)
    else:
        common.note("nobody waits")


def _print_queue(entries: "Iterable[QueueEntry]", now: "datetime") -> None:
    from torchyard.cli.format import message

    columns = ("#", "JOB", "NAME", "USER", "PRIO", "GPUS", "STARTS", "")
    with common.table(*columns, narrow=("#", "JOB", "NAME", "STARTS", "")) as table:
        for each in entries:
            starts = _in(each.expected_start_at, now) if each.expected_start_at else ""
            cells = (each.number, each.name, each.user, each.priority.value, each.gpus, starts)
            table.add_row(str(each.position), *map(str, cells), styled(message(each.reason), "dim"))


def _print_calibration(found: "Calibration") -> None:

    if not found.sources:
        common.note("no job with a forecast has succeeded yet")
        return
    with common.table("FORECAST FROM", "JOBS", "P10", "P50", "P90", "ERROR", "SINCE") as table:
        for each in found.sources:
            shares = (f"{share:.0%}" for share in (each.p10, each.p50, each.p90))
            error = f"{each.median_relative_error:.0%}"
            table.add_row(each.source, str(each.n), *shares, error, f"{each.since.astimezone():%Y-%m-%d}")
    common.note("of all jobs 10% should be done by P10, 50% by P50 and 90% by P90; ERROR is the median of P50's")


def change(
    job: common.JobRef,
    set_: Annotated[
        list[str],
        typer.Option("--set", help="name, priority, tags or time_limit, such as priority=high; may be repeated."),
    ],
    json: common.Json = False,
) -> None:
    """Change a job as it waits; its place in the queue stays what it was."""
    from torchyard.submission.drafts import override

    changes: dict[str, Any] = {}
    for each in set_:
        override(changes, each)
    with common.connect() as client:
        changed = client.change(job, changes)
    if json:
        common.print_json(changed)
    else:
        common.line(f"job {changed.number} {changed.state.value}, " + ", ".join(set_))
