"""Downloads that break off, over a real socket."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.support.handlers import connected
from torchyard import exceptions
from torchyard.client import download
from torchyard.client.connection import Connection

CONTENT = bytes(range(200))


@contextmanager
def service(*pieces: int) -> Iterator[Connection]:
    """A service that breaks each answer off after so many bytes; 0 stands for one that is starting."""
    left = list(pieces)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
            piece = left.pop(0) if left else len(CONTENT)
            if piece == 0:
                self.send_response(503)
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(CONTENT) - start))
            self.end_headers()
            self.wfile.write(CONTENT[start : start + piece])

        def log_message(self, *_: object) -> None:
            """Leave standard error alone."""

    with connected(Handler) as connection:
        yield connection


@pytest.fixture(autouse=True)
def one_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A patience that ends after one wait, which takes no time."""
    monkeypatch.setattr(download, "pauses", lambda _: iter([0.0]))
    monkeypatch.setattr(download, "CHUNK", 10)


def fetch(connection: Connection, target: Path) -> bytes:
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    return download.fetch(connection, "/file", target, size=len(CONTENT), sha256=sha256).read_bytes()


def test_the_patience_begins_anew_with_each_piece(tmp_path: Path) -> None:
    """A large file takes hours, in which a service may be started again many times."""
    with service(50, 50, 50) as connection:
        assert fetch(connection, tmp_path / "file") == CONTENT


def test_a_service_that_is_starting_is_waited_for(tmp_path: Path) -> None:
    with service(0, 50) as connection:
        assert fetch(connection, tmp_path / "file") == CONTENT


def test_one_that_stays_away_is_not_waited_for_without_end(tmp_path: Path) -> None:
    with service(0, 0, 0) as connection, pytest.raises(exceptions.UnreachableError):
        fetch(connection, tmp_path / "file")
