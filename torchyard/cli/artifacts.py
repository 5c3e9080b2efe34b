"""``checkpoints`` and ``pull``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from torchyard.cli import averaging, common

if TYPE_CHECKING:
    from torchyard.api import Checkpoint


class OrList(TyperGroup):
    """``checkpoints JOB`` lists; ``checkpoints average …`` is a command of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["list", *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(cls=OrList, help="List a job's checkpoints: yard checkpoints JOB.", no_args_is_help=True)
    group.command(name="list")(checkpoints)
    group.command()(averaging.average)
    app.add_typer(group, name="checkpoints")
    app.command()(pull)


def checkpoints(job: common.JobRef, json: common.Json = False) -> None:
    """List a job's checkpoints."""
    with common.connect() as client:
        found, now = client.checkpoints(job), client.now()
    if json:
        common.print_json(found)
        return
    if not found:
        common.note("no checkpoints yet: `yard checkpoint JOB` asks a running job for one")
        return

    from torchyard.cli.format import ago, latest
    from torchyard.quantities import format_size

    with common.table("STEP", "STATE", "SIZE", "AGE", "METRICS", "", "ID") as table:
        for each in found:
            marks = " ".join(word for word, is_so in (("best", each.best), ("pinned", each.pinned)) if is_so)
            age, told = ago(each.created_at, now), latest(each.metrics)
            table.add_row(f"{each.step:,}", each.state, format_size(each.size), age, told, marks, each.id)


def pull(
    job: common.JobRef,
    folder: Annotated[
        Path | None, typer.Argument(help="Where to put the files; default ./JOB-NUMBER.", file_okay=False)
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            help="Put the files into this code folder, where the program would have written them.", file_okay=False
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", "-c", help="latest, best, none, an id or a step; default latest, none with --to."),
    ] = None,
    outputs: Annotated[bool, typer.Option(help="Also bring the files that the job has written.")] = True,
    kept: Annotated[bool, typer.Option("--kept", help="First have the nodes bring what they keep.")] = False,
    json: common.Json = False,
) -> None:
    """Bring a job's checkpoint and the files that it has written here.

    An interrupted pull goes on where it stopped; every file is checked by its hash. With --to no file is overwritten
    that differs from what the job was submitted with: those are named, and the exit code is 1.
    """
    from torchyard.cli import pulling

    if folder is not None and to is not None:
        raise typer.BadParameter("give a folder or --to, not both")
    with common.connect() as client:
        found = client.job(job)
        wanted = checkpoint or ("none" if to else "latest")
        chosen = None if wanted == "none" else choose(client.checkpoints(found.id), wanted)
        target = to or folder or Path(f"job-{found.number}")
        pulled = pulling.pull(client, found, target, chosen, files=outputs, by_hand=to is not None, kept=kept)
    if json:
        refused = [{"file": str(path), "reason": reason} for path, reason in pulled.refused]
        common.print_json({"folder": str(target), "files": [str(path) for path in pulled.written], "refused": refused})
    else:
        for path in pulled.written:
            common.line(path)
    for path, reason in pulled.refused:
        common.warn(f"{path} is not written: {reason}")
    if not pulled.written and not pulled.refused:
        common.note(f"nothing to pull: {_lacking(wanted != 'none', outputs)}")
    if pulled.refused:
        raise typer.Exit(1)


def _lacking(checkpoint: bool, outputs: bool) -> str:
    """Say what the job has not, of what was asked for."""
    if checkpoint and outputs:
        return "the job has no stored checkpoint and has left no files here"
    if checkpoint:
        return "the job has no stored checkpoint"
    if outputs:
        return "the job has left no files here; a checkpoint comes with `--checkpoint latest`"
    return "neither a checkpoint nor files are asked for"


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
