"""Parts that all commands share: the client, JSON or tables, exit codes."""

import json
import sys
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from torchyard.cli import terminal

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic import BaseModel
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from torchyard.api import Job
    from torchyard.client.client import Client

Model = TypeVar("Model", bound="BaseModel")

#: Seconds after which a service that has not answered at all is taken for one that does not run.
FIRST_PATIENCE_S = 5.0
#: Columns where no terminal says how many: output into a pipe is not cut.
PIPE_WIDTH = 220
#: Columns of a terminal in which a table of many columns is shown whole.
WIDE = 76

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
JobRef = Annotated[str, typer.Argument(metavar="JOB", help="A job's number or id.")]


def connect(*, patient: bool = False) -> "Client":
    """A client for the stack in use.

    With `patient` a restart of the service is waited for from the start, as by what a script runs once; any other
    command can be typed again.
    """
    from torchyard.client.client import Client

    client = Client()
    client.connection.tell = note
    if not patient:
        client.connection.first_patience_s = FIRST_PATIENCE_S
    return client


def service_now(client: "Client") -> "datetime":
    """The service's clock, by an answer of it: this machine's may be off."""
    client.settings()
    return client.now()


@cache
def console() -> "Console":
    """Standard output with colours and tables, where it is a terminal; no text is markup there."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return terminal.console_class()(markup=False, emoji=False, highlight=False, width=width)


def put(*parts: terminal.Part) -> None:
    """Print a line; a part is text, or a pair of text and style."""
    console().print(terminal.joined(parts), soft_wrap=True)


class Rows:
    """Rows of a table, of which a narrow terminal shows some of the columns."""

    def __init__(self, table: "Table", kept: list[int]) -> None:
        self._table = table
        self._kept = kept

    def add_row(self, *cells: "str | Text") -> None:
        """Add a row: a cell for each column."""
        self._table.add_row(*(cells[place] for place in self._kept))


@contextmanager
def table(*columns: str, narrow: Container[str] | None = None) -> Iterator[Rows]:
    """A table to be filled, with dim headings; printed at the end.

    With `narrow`, a terminal of less than WIDE columns shows only these, and each row in one line.
    """
    from rich.table import Column, Table

    width = console().width
    if narrow is None or width >= WIDE:
        kept, made = list(range(len(columns))), Table(*columns, box=None, header_style="dim")
    else:
        kept = [place for place, name in enumerate(columns) if name in narrow]
        *heads, last = (columns[place] for place in kept)
        shown = (Column(head, no_wrap=True, max_width=width // 3) for head in heads)
        # The last one has what the others leave.
        made = Table(*shown, Column(last, no_wrap=True, ratio=1), box=None, header_style="dim", expand=True)
    yield Rows(made, kept)
    console().print(made)


def line(text: object, *, end: str = "\n") -> None:
    """Print a line without styles and never folded, for people and pipes alike."""
    print(terminal.clean(str(text)), end=end, flush=True)


def note(text: str) -> None:
    """A word to the person, beside the output."""
    print(terminal.clean(text), file=sys.stderr)


def warn(text: str) -> None:
    """A warning to the person, in yellow on a terminal."""
    print(terminal.painted(f"warning: {text}", terminal.YELLOW, sys.stderr), file=sys.stderr)


def print_json(value: "BaseModel | Iterable[BaseModel | dict[str, Any]] | dict[str, Any]") -> None:
    """A resource, or a list of them, as JSON; all but ASCII is escaped, so it steers no terminal."""
    print(json.dumps(_plain(value), indent=2))


def print_json_line(value: "BaseModel") -> None:
    """A resource as a line of JSON, escaped alike."""
    print(json.dumps(_plain(value), separators=(",", ":")), flush=True)


def checked(model: "type[Model]", given: dict[str, Any]) -> "Model":
    """Build a model from the command line; raises SpecError with the wrong fields and their mends."""
    from pydantic import ValidationError

    from torchyard.exceptions import SpecError
    from torchyard.spec import error_messages

    try:
        return model.model_validate(given)
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, each['loc']))}: {error_messages.message(each, model)}" for each in error.errors())
        raise SpecError("\n".join(wrong)) from error


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return value if isinstance(value, dict) else [_plain(each) for each in value]


def exit_code(job: "Job") -> int:
    """The job's end as an exit code: its own, 130 when cancelled, 124 when out of time, 128 + n for a signal."""
    state = job.state.value
    if state == "succeeded":
        return 0
    if state == "cancelled":
        return 130
    if job.stop is not None and job.stop.value == "timeout":
        return 124
    error = job.error
    if error is not None and error.signal:
        return 128 + error.signal
    return (error.exit_code if error else None) or 1
