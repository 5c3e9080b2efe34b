"""Entry point of ``yard``: all commands, and errors as one line with the mend."""

import atexit
import gc
import io
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

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
#: Allocations before a garbage collection: what a command imports stays. To look through it took a sixth of its time,
#: and as much again at its end.
GC_THRESHOLD = 100_000
#: Columns of a help text in a terminal that has them: in 80, half of the commands' summaries are cut.
HELP_WIDTH = 120


class Yard(TyperGroup):
    """All commands; one whose reader has gone (`yard logs 7 | head`) ends as a program that SIGPIPE ends."""

    def invoke(self, ctx: Any) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            sys.exit(141)


app = typer.Typer(
    cls=Yard,
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
    atexit.register(gc.freeze)
    # httpx would import a command line of its own, with click, rich and pygments, where those are installed.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    _open_streams()
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
    except UnicodeEncodeError as error:
        if "surrogates" not in error.reason:
            raise
        fail("an argument is not UTF-8 text: where the terminal's is another encoding, set LC_ALL=C.UTF-8")
        sys.exit(_failure())
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


def _open_streams() -> None:
    """Have all three standard streams; what the encoding of an output lacks is written as a question mark."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123  (as long as the process)
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict" and mode == "w":
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    """Let what Python still has to write at exit go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str) -> None:
    """Print an error, in red on a terminal."""
    print(terminal.painted(f"yard: {message}", terminal.RED, sys.stderr), file=sys.stderr)


if __name__ == "__main__":
    run()
