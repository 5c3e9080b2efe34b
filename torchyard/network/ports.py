"""Ports that stay one program's while it ends and starts again."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held(host: str, port: int = 0) -> Iterator[int]:
    """A port, for 0 a free one, that the system gives to nobody else until the block is left.

    It is bound, and nobody listens there until a program that is told the number binds it, too, with SO_REUSEADDR as
    servers do. Raises OSError when it is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        yield int(bound.getsockname()[1])
