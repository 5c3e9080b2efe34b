"""Keys of a terminal, one by one, without waiting for Enter."""

import os
import re
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

#: An escape sequence, or one byte.
_KEY = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|(?=[^\[O]))|[^\x1b]")
#: Longest part of a sequence that is waited for; what is longer is no key.
_PART = 8

NAMES = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"k": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"j": "down",
    b"q": "leave",
    b"\x03": "leave",
    b"\x1a": "suspend",
}


class Keys:
    """Names of the keys in what a terminal sends; a sequence that comes in parts is one key."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The known keys of all that has come."""
        text, end, found = self._rest + data, 0, []
        while match := _KEY.match(text, end):
            end = match.end()
            found.append(NAMES.get(match[0], ""))
        self._rest = text[end:] if len(text) - end <= _PART else b""
        return [name for name in found if name]

    def read(self, seconds: float) -> list[str]:
        """The keys that are pressed within some seconds; the first ends the waiting."""
        descriptor = sys.stdin.fileno()
        if not select.select([descriptor], [], [], seconds)[0]:
            return []
        try:
            data = os.read(descriptor, 1024)
        except OSError:
            data = b""
        return self.feed(data) if data else ["leave"]  # the terminal has gone


@contextmanager
def unbuffered() -> Iterator[None]:
    """Keys come at once and unseen, Ctrl-Z as a key; afterwards the terminal is what it was."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        mode = termios.tcgetattr(descriptor)
        mode[6][termios.VSUSP] = bytes([os.fpathconf(descriptor, "PC_VDISABLE")])
        termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
