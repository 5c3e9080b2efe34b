"""The exception in the end of a log."""

import re
from typing import Final

_BEGIN: Final = "Traceback (most recent call last):"
#: A script that cannot be compiled has no traceback, only the place and the error.
#: A line can be read in one way only: with more, dozens of indented lines would take for ever.
_NOT_COMPILED: Final = re.compile(r"^ +File .*\n(?: .*\n)*((?:Syntax|Indentation|Tab)Error: .*)", re.MULTILINE)


def raised_line(tail: str) -> str | None:
    """Return the line of the exception that was raised last; None where no traceback of Python stands in the text.

    A rank that was killed has no traceback: the end of its log says what it printed last, which is no reason.
    """
    _, found, frames = tail.rpartition(_BEGIN)
    if not found:
        error = _NOT_COMPILED.search(tail)
        return error and error[1].rstrip()
    return next((line.rstrip() for line in frames.splitlines() if line and not line[0].isspace()), None)
