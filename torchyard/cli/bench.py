"""``bench strategies``: the built-in trainer's strategies side by side, as a job of the queue."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchyard.cli import common, extras, outputs

if TYPE_CHECKING:
    from torchyard.api import Job, Output
    from torchyard.client.client import Client

WORDS = {"ignore_unknown_options": True, "allow_interspersed_args": True}
PAGE = "strategies.html"
#: Seconds for which the result may take to arrive after the job's end.
PATIENCE_S = 60.0


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Compare the built-in trainer's strategies on this box.", no_args_is_help=True)
    group.command(context_settings=WORDS)(strategies)
    app.add_typer(group, name="bench")


def strategies(
    options: Annotated[
        list[str] | None, typer.Argument(metavar="-- OPTIONS", help="For `python -m trainer.bench`.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A recipe's model, such as deeplabv3_resnet101; with --data.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="A recipe's data, such as voc or '{name: voc, root: /data}'.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Made-up images of the data's shape, no download.")
    ] = False,
    epochs: Annotated[int | None, typer.Option(help="Time whole epochs, so many.", min=1)] = None,
    steps: Annotated[int | None, typer.Option(help="Time segments of so many steps; default 20.", min=1)] = None,
    save: Annotated[bool, typer.Option("--save/--no-save", help="Checkpoints are part of the times.")] = False,
    gpus: Annotated[
        str, typer.Option("--gpus", "-g", help="GPUs (or CPU slots) to compare on; all: those of a node.")
    ] = "all",
    time_limit: Annotated[str | None, typer.Option(help="Stop it after this running time, such as 1h.")] = None,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the result in a browser, where there is one.")
    ] = True,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Submit, print the number, return.")] = False,
    json: common.Json = False,
) -> None:
    """Train one model with each strategy on 1, 2, 4 and 8 devices and show speed-up and efficiency.

    It runs as a job, so that it has its devices to itself. The table is its log; CSV, pictures and the result page are
    brought to `bench-JOB/`. Without --model a small model and an effective batch of 256 are taken, with it 8 samples a
    device (`-- --batch 256`, `-- --per-device 16`), and single, DataParallel and DDP are compared. Options behind `--`
    go to `python -m trainer.bench`, such as `-- --devices 2 4 --strategies ring ddp`.
    """
    from torchyard.cli import submit

    extras.require("bench", "trainer")
    _check(model, data, offline=offline)
    given = [*_words(model=model, data=data, epochs=epochs, steps=steps), *["--offline"] * offline, *["--save"] * save]
    # Isolated: the job's path holds our in-job part alone, which would hide the rest of the distribution.
    words = [sys.executable, "-I", "-m", "trainer.bench", *given, *(options or [])]
    limit = {"time_limit": time_limit} if time_limit else {}
    resources = {"gpus": submit.number_or_all(gpus)}
    spec = {"name": "bench-strategies", "launcher": "none", "command": words, "resources": resources, **limit}
    _run(spec, opens=open_, detach=detach, json=json)


def _check(model: str | None, data: str | None, *, offline: bool) -> None:
    """Refuse what no job could compare, before one is queued."""
    import yaml

    from torchyard.exceptions import SpecError
    from torchyard.recipe import Recipe

    if (model is None) != (data is None):
        raise SpecError("--model and --data go together: give both, or neither")
    if model is None or data is None:
        if offline:
            raise SpecError("--offline: what is compared without --model and --data needs no download: leave it out")
        return
    try:
        nouns = {"model": yaml.safe_load(model), "data": yaml.safe_load(data)}
    except yaml.YAMLError as error:
        raise SpecError("--model and --data: give a name, or '{name: voc, root: /data}'") from error
    common.checked(Recipe, {**nouns, "strategy": "single"})


def _words(**values: Any) -> list[str]:
    return [word for name, value in values.items() if value is not None for word in (f"--{name}", str(value))]


def _run(spec: dict[str, Any], *, opens: bool, detach: bool, json: bool) -> None:
    from torchyard.cli import submit
    from torchyard.cli.follow import follow
    from torchyard.submission import drafts

    with common.connect() as client:
        job = submit.submitted(client, drafts.from_data(spec))
        if detach:
            submit.told(client, job, detach=True, json=json)
            return
        ended = follow(client, job, beside=json)
        page = _fetched(client, ended) if ended.state.value == "succeeded" else None
    if json:
        common.print_json(ended)
    if page is not None:
        (common.note if json else common.line)(str(page))
        _show(page, opens=opens)
    raise typer.Exit(common.exit_code(ended) if ended.ended_at else submit.LEFT)


def _fetched(client: "Client", job: "Job") -> Path | None:
    """The result page on this machine, with what lies beside it."""
    found = _outputs(client, job)
    if PAGE not in {file.name for file in found}:
        common.warn(f"the result has not arrived yet: `yard pull {job.number}` brings it")
        return None
    folder = Path(f"bench-{job.number}").resolve()
    for file in found:
        client.download_output(job.id, file, folder)
    return folder / PAGE


def _outputs(client: "Client", job: "Job") -> "list[Output]":
    """Return the job's outputs, once all of them are here."""
    if not outputs.wait_settled(client, job.id, PATIENCE_S):
        return []
    return [file for file in client.outputs(job.id) if file.root == "output" and file.state == "stored"]


def _show(page: Path, *, opens: bool) -> None:
    """Open the page where a person could see it: a browser of the terminal itself would take the terminal."""
    seen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if opens and not seen:
        common.note("no display here: copy the page to where you have a browser; it needs nothing beside it")
    elif opens and not webbrowser.open(page.as_uri()):
        common.note("no browser could be started: open the page by hand")
