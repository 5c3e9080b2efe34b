"""``checkpoints`` and ``pull``."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from torchyard.cli import averaging, common

if TYPE_CHECKING:
    from torchyard.api import Checkpoint
    from torchyard.client import Client


class OrList(TyperGroup):
    """``checkpoints JOB`` lists; ``checkpoints average …`` is a command of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["list", *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(cls=OrList, help="List a job's checkpoints: yard checkpoints JOB.", no_args_is_help=True)
    group.command(name="list")(checkpoints)
    group.command()(averaging.average)
    app.add_typer(group, name="checkpoints")
    app.command()(pull)


def checkpoints(job: common.JobRef, json: common.Json = False) -> None:
    """List a job's checkpoints."""
    with common.connect() as client:
        found = client.checkpoints(job)
    if json:
        common.print_json(found)
        return
    if not found:
        common.note("no checkpoints yet: `yard checkpoint JOB` asks a running job for one")
        return

    from torchyard.cli.format import ago, latest, now
    from torchyard.quantities import format_size

    with common.table("STEP", "STATE", "SIZE", "AGE", "METRICS", "", "ID") as table:
        for each in found:
            marks = " ".join(word for word, is_so in (("best", each.best), ("pinned", each.pinned)) if is_so)
            age, told = ago(each.created_at, now()), latest(each.metrics)
            table.add_row(f"{each.step:,}", each.state, format_size(each.size), age, told, marks, each.id)


def pull(
    job: common.JobRef,
    folder: Annotated[
        Path | None, typer.Argument(help="Where to put the files; default ./JOB-NUMBER.", file_okay=False)
    ] = None,
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", "-c", help="Which checkpoint: latest, best, none, or its id or step.")
    ] = "latest",
    outputs: Annotated[bool, typer.Option(help="Also bring the output files.")] = True,
    json: common.Json = False,
) -> None:
    """Bring a job's checkpoint and output files here.

    An interrupted pull goes on where it stopped; every file is checked by its hash.
    """
    with common.connect() as client:
        found = client.job(job)
        target = folder or Path(f"job-{found.number}")
        chosen = None if checkpoint == "none" else choose(client.checkpoints(found.id), checkpoint)
        paths = _pull(client, found.id, target, chosen, outputs)
    if json:
        common.print_json({"folder": str(target), "files": [str(path) for path in paths]})
        return
    for path in paths:
        print(path)
    if not paths:
        common.note("nothing to pull: the job has no stored checkpoint and no output files")


def choose(found: "list[Checkpoint]", wanted: str) -> "Checkpoint | None":
    """A stored checkpoint by ``latest``, ``best``, id or step; None if there is none and any would do."""
    from torchyard.exceptions import TorchYardError

    stored = [each for each in found if each.state == "stored"]
    if wanted == "latest":
        return stored[-1] if stored else None
    picked = [each for each in stored if wanted in {each.id, str(each.step)} or (wanted == "best" and each.best)]
    if not picked:
        raise TorchYardError(f"no stored checkpoint {wanted!r}: `yard checkpoints` lists those that there are")
    return picked[-1]


def _pull(client: "Client", job: str, target: Path, checkpoint: "Checkpoint | None", with_outputs: bool) -> list[Path]:
    outputs = client.outputs(job) if with_outputs else []
    total = (checkpoint.size if checkpoint else 0) + sum(output.size for output in outputs)
    paths: list[Path] = []
    with progress(total) as advance:
        if checkpoint is not None:
            place = client.download_checkpoint(checkpoint, target / f"step-{checkpoint.step}", progress=advance)
            paths += [place / file.name for file in checkpoint.files]
        paths += [client.download_output(job, each, target / "output", progress=advance) for each in outputs]
    return paths


class progress:  # noqa: N801  reads like the function it stands for
    """A bar of bytes on a terminal's stderr; ``with progress(total) as advance`` gives the function that moves it."""

    def __init__(self, total: int, what: str = "") -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(True), TransferSpeedColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(what, total=total)

    def __enter__(self) -> Callable[[int], None]:
        self._bar.start()
        return lambda moved: self._bar.advance(self._task, moved)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
