"""A log's bytes as lines for a reader: progress bars folded, some of the lines chosen."""

import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator

from torchyard.cli import terminal

#: A longer line comes in parts: a program may write for hours without a newline.
LONGEST = 2**20


def lines(pieces: Iterable[bytes], *, raw: bool = False) -> Iterator[str]:
    """Whole lines, each with its newline but the last; of what was drawn over, unless `raw`, what was last. A line
    longer than `LONGEST` comes in parts, only the last of them with the newline.

    Bytes that are no UTF-8 stay what they are on the way to standard output (surrogateescape).
    """
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from (_line(line + b"\n", raw) for line in whole)
        if not raw:  # a progress bar of hours is one line
            rest = rest[max(0, rest.rstrip(b"\r").rfind(b"\r")) :]
        if len(rest) > LONGEST:
            yield _line(rest, raw)
            rest = b""
    if rest:
        yield _line(rest, raw)


def _line(data: bytes, raw: bool) -> str:
    text = data.decode(errors="surrogateescape")
    return text if raw else terminal.drawn(text.removesuffix("\n")) + "\n" * text.endswith("\n")


def chosen(found: Iterable[str], pattern: "re.Pattern[str] | None", last: int | None) -> Iterable[str]:
    """Lines that a pattern matches, and of them the last."""
    matching = found if pattern is None else (line for line in found if pattern.search(terminal.clean(line)))
    return matching if last is None else deque(matching, maxlen=last)


def write(found: Iterable[str], *, raw: bool, prefix: str = "") -> None:
    """Print lines: into a pipe as they are, to a terminal without what moves its cursor."""
    safe = sys.stdout.isatty() and not raw
    for line in found:
        text = prefix + (terminal.clean_log(line) if safe else line)
        text += "\n" * (bool(prefix) and not text.endswith("\n"))
        sys.stdout.buffer.write(text.encode(errors="surrogateescape"))
    sys.stdout.buffer.flush()
