"""Streams that break off, over a real socket."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from tests.support.handlers import connected
from torchyard import exceptions
from torchyard.client import log_stream
from torchyard.client.connection import Connection

PING = ": ping\n\n"


def piece(text: str, offset: int) -> str:
    data = f'{{"attempt": 1, "offset": {offset}, "next": {offset + len(text)}, "text": "{text}"}}'
    return f"id: 1:{offset + len(text)}\nevent: data\ndata: {data}\n\n"


END = 'event: end\ndata: {"attempt": 1, "offset": 0}\n\n'


@contextmanager
def service(
    *bodies: str, content_type: str = "text/event-stream", refused: int | None = None
) -> Iterator[tuple[Connection, list[str | None]]]:
    """A service that answers each request with the next body and closes, and the Last-Event-ID of each request.

    The second request is `refused` with this status.
    """
    asked: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = bodies[min(len(asked), len(bodies) - 1)]
            asked.append(self.headers.get("Last-Event-ID"))
            self.send_response(refused if refused is not None and len(asked) == 2 else 200)
            self.send_header("Content-Type", content_type)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Leave standard error alone."""

    with connected(Handler) as connection:
        yield connection, asked


def texts(connection: Connection) -> list[str]:
    return [chunk.text for chunk in log_stream.follow(connection, "/jobs/1/logs/stream", {})]


def test_comments_between_events_are_no_pieces() -> None:
    with service(PING + piece("one", 0) + PING + PING + piece("two", 3) + END) as (connection, _):
        assert texts(connection) == ["one", "two"]


@pytest.mark.parametrize("cut", range(1, len(piece("two", 3)), 7))
def test_a_broken_stream_goes_on_behind_its_last_whole_event(cut: int) -> None:
    whole = piece("two", 3)
    with service(piece("one", 0) + PING + whole[:-cut], whole + END) as (connection, asked):
        assert texts(connection) == ["one", "two"]
        assert asked == [None, "1:3"]


def test_a_stream_that_is_refused_for_a_moment_is_opened_again() -> None:
    bodies = piece("one", 0), "", piece("two", 3) + END
    with service(*bodies, refused=429) as (connection, asked):
        assert texts(connection) == ["one", "two"]
        assert asked == [None, "1:3", "1:3"]


def test_line_separators_of_other_alphabets_do_not_cut_a_piece() -> None:
    with service(piece("a\u2028b\x0bc", 0).replace("\x0b", "\\u000b") + END) as (connection, _):
        assert texts(connection) == ["a\u2028b\x0bc"]


def test_an_answer_that_is_no_stream_is_an_absent_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stream, "PATIENCE_S", 0.0)
    with (
        service("<p>Sign in</p>", content_type="text/html") as (connection, _),
        pytest.raises(exceptions.UnreachableError, match="text/html"),
    ):
        texts(connection)
