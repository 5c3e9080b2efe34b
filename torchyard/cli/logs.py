"""``logs`` and ``metrics``."""

import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common, loglines, moments
from torchyard.cli.export import ExportFormat
from torchyard.cli.terminal import clean, joined

if TYPE_CHECKING:
    from torchyard.api import Metrics
    from torchyard.cli.follow import Screen
    from torchyard.client.client import Client


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(logs)
    app.command()(metrics)


def logs(
    job: common.JobRef,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the log grows, until the end.")] = False,
    rank: Annotated[
        list[int],
        typer.Option(
            "--rank", "-r", help="Whose log; -1 is the launcher's, -2 the second node's; repeatable.", min=-64
        ),
    ] = [0],  # noqa: B006
    attempt: Annotated[int | None, typer.Option(help="Which attempt; default the newest.", min=1)] = None,
    tail: Annotated[int | None, typer.Option("--tail", "-n", help="Only so many lines, the last.", min=0)] = None,
    grep: Annotated[str | None, typer.Option(help="Only lines that this regular expression is found in.")] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only what it wrote from then on, to a few seconds: 10m, 14:05 or 2026-11-23T09:00+01:00."),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Byte for byte, without folding progress bars.")] = False,
    list_: Annotated[bool, typer.Option("--list", "-l", help="List the logs that there are.")] = False,
    json: common.Json = False,
) -> None:
    """Print a rank's log.

    Of a progress bar that is drawn over itself, the last state is printed. Lines of several ranks begin with the rank.
    """
    with common.connect() as client:
        begin = None if since is None else moments.past("--since", since, common.service_now(client))
        if list_:
            _list(client, job, json)
            return
        view = _View(raw=raw, pattern=_pattern(grep), tail=tail, since=begin, follow=follow)
        if not json:
            _print_ranks(client, job, rank, attempt, view)
        elif not follow:
            _print_json(client, job, rank, attempt, view)
        elif tail is not None or grep is not None:
            raise typer.BadParameter("--tail and --grep do not go with --follow --json, which is the log as it grows")
        else:
            _follow_json(client, job, rank, attempt, view)


@dataclass(frozen=True, kw_only=True)
class _View:
    """Part of a log that is printed, and its form."""

    raw: bool
    pattern: re.Pattern[str] | None
    tail: int | None
    since: datetime | None
    follow: bool


def _pattern(text: str | None) -> re.Pattern[str] | None:
    from torchyard.exceptions import SpecError

    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise SpecError(f"--grep {text}: not a regular expression: {error}") from error


def _print_json(client: "Client", job: str, ranks: list[int], attempt: int | None, view: _View) -> None:
    """Print a rank's log as it was written, of several ranks a list of them."""
    found = []
    for rank in ranks:
        pieces = _pieces(client, job, rank, attempt, view)
        lines = loglines.chosen(loglines.lines(pieces, raw=True), view.pattern, view.tail)
        text = "".join(lines).encode(errors="surrogateescape").decode(errors="replace")
        found.append({"rank": rank, "attempt": attempt, "text": text})
    common.print_json(found[0] if len(found) == 1 else found)


def _follow_json(client: "Client", job: str, ranks: list[int], attempt: int | None, view: _View) -> None:
    for rank in ranks:
        for chunk in client.follow_logs(job, rank=rank, attempt=attempt, since=view.since):
            common.print_json_line(chunk)


def _print_ranks(client: "Client", job: str, ranks: list[int], attempt: int | None, view: _View) -> None:
    prefixes = [f"[{rank}] " if len(ranks) > 1 else "" for rank in ranks]
    if not view.follow:
        for rank, prefix in zip(ranks, prefixes, strict=True):
            _print_rank(client, job, rank, attempt, view, prefix)
        return
    from torchyard.cli.follow import Screen

    screen = Screen()
    calls = [(client, job, rank, attempt, view, screen, prefix) for rank, prefix in zip(ranks, prefixes, strict=True)]
    # Daemons: Ctrl-C does not wait for logs that grow.
    others = [threading.Thread(target=_follow_other, args=call, daemon=True) for call in calls[1:]]
    for thread in others:
        thread.start()
    _follow_rank(*calls[0])
    for thread in others:
        thread.join()


def _print_rank(client: "Client", job: str, rank: int, attempt: int | None, view: _View, prefix: str) -> None:
    pieces = _pieces(client, job, rank, attempt, view)
    pieces = _told_if_none(pieces, f"rank {rank}" if rank >= 0 else "the launcher", job, view)
    found = loglines.chosen(loglines.lines(pieces, raw=view.raw), view.pattern, view.tail)
    loglines.write(found, raw=view.raw, prefix=prefix)


def _pieces(client: "Client", job: str, rank: int, attempt: int | None, view: _View) -> Iterable[bytes]:
    """The part of a log that holds what is wanted of it."""
    if view.tail is not None and view.pattern is None:
        return [client.log_tail(job, view.tail, rank=rank, attempt=attempt, since=view.since)[0]]
    return client.logs(job, rank=rank, attempt=attempt, since=view.since)


def _told_if_none(pieces: Iterable[bytes], writer: str, job: str, view: _View) -> Iterator[bytes]:
    """Pass pieces on, and tell where there are none: a wrong rank looks like one that is silent."""
    empty = True
    for piece in filter(None, pieces):
        empty = False
        yield piece
    if empty and view.since is None and view.tail != 0:
        common.note(f"{writer} has written nothing so far: `yard logs --list {job}` lists the logs that there are")


def _follow_rank(
    client: "Client", job: str, rank: int, attempt: int | None, view: _View, screen: "Screen", prefix: str
) -> None:
    from torchyard.cli.follow import LineBuffer

    def write(text: str) -> None:
        found = (line for line in text.splitlines(keepends=True) if _matches(line.removeprefix(prefix), view.pattern))
        screen.write("".join(found))

    lines, behind, since = LineBuffer(write, screen.bar, prefix), 0, view.since
    feed = screen.write if view.raw else lines.feed
    if view.tail is not None:
        end, behind = client.log_tail(job, view.tail, rank=rank, attempt=attempt, since=since)
        feed(end.decode(errors="replace"))
        since = None
    for chunk in client.follow_logs(job, rank=rank, attempt=attempt, offset=behind, since=since):
        feed(chunk.text)
    lines.end()


def _follow_other(
    client: "Client", job: str, rank: int, attempt: int | None, view: _View, screen: "Screen", prefix: str
) -> None:
    """Follow a rank in a thread of its own, whose problems nobody else would tell."""
    from torchyard.exceptions import TorchYardError

    try:
        _follow_rank(client, job, rank, attempt, view, screen, prefix)
    except BrokenPipeError:
        return  # told by the rank that is followed beside it
    except TorchYardError as error:
        common.warn(f"the log of rank {rank} breaks off: {error}")


def _matches(line: str, pattern: re.Pattern[str] | None) -> bool:
    return pattern is None or pattern.search(clean(line)) is not None


def _list(client: "Client", job: str, json: bool) -> None:
    streams = client.log_streams(job)
    if json:
        common.print_json(streams)
        return

    from torchyard.quantities import format_size

    with common.table("ATTEMPT", "RANK", "SIZE", "DROPPED") as table:
        for each in streams:
            rank = str(each.rank) if each.rank >= 0 else "launcher" if each.rank == -1 else f"launcher ({each.rank})"
            dropped = format_size(each.dropped_bytes) if each.dropped_bytes else ""
            table.add_row(str(each.attempt), rank, format_size(each.size), dropped)


def metrics(
    job: common.JobRef,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Only these series.")] = None,
    form: Annotated[
        ExportFormat | None, typer.Option("--export", help="Write all points, for another tool.", show_default=False)
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            help="File or folder to export to, `-` for standard output, or an MLflow server; default job-N.…."
        ),
    ] = None,
    json: common.Json = False,
) -> None:
    """Show metrics as small curves, or as JSON; or export them."""
    with common.connect() as client:
        if form is not None:
            _export(client, job, names or [], form, to)
            return
        found = client.metrics(job, names=names or (), max_points=None if json else 400)
        lost = sum(each.dropped_records for each in client.attempts(job))
    if json:
        common.print_json(found)
    elif found.series:
        _print(found)
    else:
        common.note(
            "no metrics yet: the script reports them with torchyard.report(step=…, loss=…), or logs with TensorBoard, "
            "Weights & Biases, MLflow or Trackio"
        )
    if lost:
        common.warn(f"{_lost(lost)} lost, mostly because the disk was full: points are missing")


def _lost(records: int) -> str:
    from torchyard.cli.format import counted

    return counted(records, "record was", "records were")


def _export(client: "Client", job: str, names: list[str], form: ExportFormat, to: str | None) -> None:
    from torchyard.cli.export import export

    place = export(client, client.job(job), names, form, to)
    if place:
        common.line(place)


def _print(found: "Metrics") -> None:

    from torchyard.cli.format import number, sparkline

    many = len({series.rank for series in found.series}) > 1
    with common.table("METRIC", "STEP", "LAST", "LEAST", "MOST", "") as table:
        for series in found.series:
            if not series.points:
                continue
            values = [point[2] for point in series.points]
            finite = [value for value in values if not isinstance(value, str)]
            name = joined([series.name, (f" rank {series.rank}", "dim")]) if many else series.name
            least, most = (number(min(finite)), number(max(finite))) if finite else ("", "")
            table.add_row(name, f"{series.points[-1][0]:,}", number(values[-1]), least, most, sparkline(values))
