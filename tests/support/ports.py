"""A port for a program that is told where to listen."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved() -> Iterator[int]:
    """A port of the loopback that no other program is given: it stays bound, and the one for which it is may listen.

    One that was merely free goes, now and then, to another test's server before the program has begun.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # servers set it too
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])
