"""The exception in the end of a log."""

_BEGIN = "Traceback (most recent call last):"


def raised_line(tail: str) -> str | None:
    """Return the line of the exception that was raised last; None where no traceback of Python stands in the text.

    A rank that was killed has no traceback: the end of its log says what it printed last, which is no reason.
    """
    _, found, frames = tail.rpartition(_BEGIN)
    if not found:
        return None
    return next((line.rstrip() for line in frames.splitlines() if line and not line[0].isspace()), None)
