"""``bench strategies``: the built-in trainer's strategies side by side, as a job of the queue."""

import sys
from typing import Annotated

import typer

from torchyard.cli import common

WORDS = {"ignore_unknown_options": True, "allow_interspersed_args": True}


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(help="Compare the built-in trainer's strategies on this box.", no_args_is_help=True)
    group.command(context_settings=WORDS)(strategies)
    app.add_typer(group, name="bench")


def strategies(
    options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTIONS...]", help="For `python -m trainer.bench`.")
    ] = None,
    gpus: Annotated[int, typer.Option("--gpus", "-g", help="GPUs (or CPU slots) to compare on.", min=1)] = 2,
    time_limit: Annotated[str | None, typer.Option(help="Stop it after this running time, such as 1h.")] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Submit, print the number, return.")] = False,
    json: common.Json = False,
) -> None:
    """Train one model with each strategy at one effective batch and print speed-up and efficiency.

    It runs as a job, so that it has its devices to itself; the table is its log, and `yard pull JOB` brings the CSV
    and the plots. Options behind `--` go to `python -m trainer.bench`, such as `-- --batch 512 --steps 50`.
    """
    from torchyard import submission
    from torchyard.cli.submit import submitted_and_told

    # Isolated: the job's path holds our in-job part alone, which would hide the rest of the distribution.
    words = [sys.executable, "-I", "-m", "trainer.bench", *(options or [])]
    given = {"time_limit": time_limit} if time_limit else {}
    data = {"name": "bench-strategies", "launcher": "none", "command": words, "resources": {"gpus": gpus}, **given}
    submitted_and_told(submission.from_data(data), detach=detach, json=json)
