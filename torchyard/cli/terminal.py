"""Text on its way to the terminal: what others wrote is shown as it is, and steers nothing.

Names, tags, metrics and messages come from other people and from programs. Nothing that is printed is markup, and
control characters, which could clear the screen, colour what follows or reverse a line, are taken out of it here.
"""

import os
import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from torchyard.control_characters import STEERING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: Words, words with a style, or both together.
Part: TypeAlias = "str | tuple[str, str] | Text"

#: Escape sequences whole (CSI, OSC and other strings, single shifts), so that no `[2J` is left of one; then the rest.
_STRINGS = r"\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"
_SEQUENCES = rf"\x1b\[[0-?]*[ -/]*[@-~]|{_STRINGS}|\x1b[ -/]*[0-~]"
_STEERING = re.compile(rf"{_SEQUENCES}|[{STEERING}]")
#: Colours and weights (SGR) change how text looks and nothing else.
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
RED, YELLOW = 31, 33


def clean(text: str) -> str:
    """The text without escape sequences and control characters; tabs and newlines stay."""
    return _STEERING.sub("", text)


def clean_log(text: str) -> str:
    """The same for a program's output: its colours stay, what moves the cursor or talks to the terminal goes."""
    return _STEERING.sub(lambda found: found[0] if _COLOUR.fullmatch(found[0]) else "", text)


def can_draw(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that moves its cursor and shows colours."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def painted(text: str, colour: int, stream: TextIO) -> str:
    """Return a text, cleaned, in a colour where the stream is a terminal that shows some and nobody forbids it."""
    wanted = can_draw(stream) and not os.environ.get("NO_COLOR")
    return f"\033[{colour}m{clean(text)}\033[0m" if wanted else clean(text)


def drawn(line: str) -> str:
    """Return what is left of a line that was drawn over with carriage returns, as progress bars do."""
    return line.rstrip("\r").rpartition("\r")[2]


def styled(text: str, style: str) -> "Text":
    """Text in a style, for a table's cell or a part of a line."""
    from rich.text import Text

    return Text(clean(text), style)


def joined(parts: Iterable[Part], between: str = "") -> "Text":
    """Parts as one text."""
    from rich.text import Text

    return Text(between).join(_text(part) for part in parts)


def _text(part: Part) -> "Text":
    if isinstance(part, str):
        return styled(part, "")
    return styled(*part) if isinstance(part, tuple) else part


@cache
def console_class() -> "type[Console]":
    """A console that cleans all that is printed; rich is imported only where something is."""
    from rich import console, text

    class CleanConsole(console.Console):
        def render_str(self, text: str, **options: Any) -> text.Text:
            return super().render_str(clean(text), **options)

        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704  (called where it was caught: rich itself would end with another code)

    return CleanConsole
