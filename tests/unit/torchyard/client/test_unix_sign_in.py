"""Sign-in at a socket whose service does not answer as it should."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from torchyard import exceptions
from torchyard.client import unix_sign_in


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            thread.join()


@pytest.mark.parametrize("answer", [b"", b'{"url": ', b"[]\n"])
def test_a_service_that_breaks_off_is_named(short_tmp: Path, answer: bytes) -> None:
    path = short_tmp / "sign-in.sock"
    with answering(path, answer), pytest.raises(exceptions.UnreachableError, match="does not answer"):
        unix_sign_in.sign_in(path)
