"""Entry point of ``yard``: all commands, and errors as one line with the mend."""

import gc
import os
import sys
from typing import Annotated

import typer

import torchyard
from torchyard.cli import (
    artifacts,
    audit,
    backup,
    bench,
    box,
    config,
    discard,
    install,
    jobs,
    link,
    logs,
    notices,
    outputs,
    people,
    queue,
    secrets,
    sharing,
    simulate,
    stack,
    stacks,
    submit,
    sweeps,
    tensorboard,
    terminal,
    top,
)
from torchyard.errnos import NO_SPACE
from torchyard.exceptions import MissingExtraError, TorchYardError

#: As with `docker run`: the command's own failure, where other codes are the job's.
OWN_FAILURE = 125
JOB_COMMANDS = frozenset({"run", "wait"})
#: Allocations before a garbage collection: what a command imports stays; to look through it took a sixth of its time.
GC_THRESHOLD = 100_000
#: Columns of a help text in a terminal that has them: in 80, half of the commands' summaries are cut.
HELP_WIDTH = 120

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH},
)
for group in (
    stack,
    install,
    submit,
    jobs,
    queue,
    notices,
    logs,
    stacks,
    outputs,
    artifacts,
    audit,
    backup,
    discard,
    link,
    bench,
    box,
    config,
    people,
    secrets,
    sharing,
    simulate,
    sweeps,
    tensorboard,
    top,
):
    group.register(app)


def print_version(asked: bool) -> None:
    """Print the version and end, if ``--version`` was given."""
    if asked:
        print(f"yard {torchyard.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """TorchYard: a training job queue for teams that share a GPU box."""


def run() -> None:
    """Run the command line of this process."""
    gc.set_threshold(GC_THRESHOLD)
    # httpx would import a command line of its own, with click, rich and pygments, where those are installed.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    try:
        app(prog_name="yard")
    except MissingExtraError as error:
        fail(str(error))
        sys.exit(2)
    except TorchYardError as error:
        fail(str(error))
        sys.exit(_failure())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader has gone (`yard logs 7 | head`).
        _drop_output()
        sys.exit(141)
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        _drop_output()
        where = error.filename or "where this command writes"
        fail(f"the disk is full: {where}; make room there, then run it again")
        sys.exit(_failure())


def _failure() -> int:
    """Return the exit code of a failure of our own, which no job's is taken for."""
    return OWN_FAILURE if sys.argv[1:2] and sys.argv[1] in JOB_COMMANDS else 1


def _drop_output() -> None:
    """Let what Python still has to write at exit go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str) -> None:
    """Print an error, in red on a terminal."""
    red, plain = ("\033[31m", "\033[0m") if sys.stderr.isatty() else ("", "")
    print(f"{red}yard: {terminal.clean(message)}{plain}", file=sys.stderr)


if __name__ == "__main__":
    run()
