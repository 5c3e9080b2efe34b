"""``logs`` and ``metrics``."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common
from torchyard.cli.export import Form
from torchyard.cli.terminal import joined

if TYPE_CHECKING:
    from torchyard.api import Metrics
    from torchyard.client import Client


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(logs)
    app.command()(metrics)


def logs(
    job: common.JobRef,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the log grows, until the end.")] = False,
    rank: Annotated[
        int, typer.Option("--rank", "-r", help="Whose log; -1 is the launcher's, -2 the second node's.", min=-64)
    ] = 0,
    attempt: Annotated[int | None, typer.Option(help="Which attempt; default the newest.", min=1)] = None,
    list_: Annotated[bool, typer.Option("--list", "-l", help="List the logs that there are.")] = False,
    json: common.Json = False,
) -> None:
    """Print a rank's log, byte for byte."""
    with common.connect() as client:
        if list_:
            _list(client, job, json)
        elif follow:
            for chunk in client.follow_logs(job, rank=rank, attempt=attempt):
                print(chunk.model_dump_json() + "\n" if json else chunk.text, end="", flush=True)
        elif json:
            text = b"".join(client.logs(job, rank=rank, attempt=attempt)).decode(errors="replace")
            common.print_json({"rank": rank, "attempt": attempt, "text": text})
        else:
            for piece in client.logs(job, rank=rank, attempt=attempt):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


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
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these series.")] = None,
    form: Annotated[
        Form | None, typer.Option("--export", help="Write all points, for another tool.", show_default=False)
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
        common.warn(f"{lost:,} records were lost, mostly because the disk was full: their points are missing")


def _export(client: "Client", job: str, names: list[str], form: Form, to: str | None) -> None:
    from torchyard.cli.export import export

    place = export(client, client.job(job), names, form, to)
    if place:
        print(place)


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
