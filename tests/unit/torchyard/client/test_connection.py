from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.support.handlers import connected
from torchyard.client import connection as module
from torchyard.client.connection import Connection
from torchyard.exceptions import NotFoundError, UnreachableError


class Clock:
    """A clock that only sleep moves: no busy machine shortens a patience."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


class Service(ThreadingHTTPServer):
    """A service whose clock is not that of this machine."""

    ahead = timedelta()
    #: Requests that it will hang up on.
    away = 0


class Handler(BaseHTTPRequestHandler):
    server: Service

    def date_time_string(self, timestamp: float | None = None) -> str:
        del timestamp
        return format_datetime(datetime.now(UTC) + self.server.ahead, usegmt=True)

    def do_GET(self) -> None:
        if self.server.away:
            self.server.away -= 1
            self.close_connection = True
            return
        self.send_response(204)
        self.end_headers()

    def log_message(self, *told: object) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[Service]:
    server = Service(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("hours", [-3, 0, 3])
def test_times_are_compared_with_the_services_clock(service: Service, hours: int) -> None:
    connection = Connection(f"http://127.0.0.1:{service.server_port}", "token")
    service.ahead = timedelta(hours=hours)
    assert abs(connection.now() - datetime.now(UTC)) < timedelta(minutes=1)
    connection.request("GET", "/anything")
    assert abs(connection.now() - datetime.now(UTC) - service.ahead) < timedelta(minutes=1)
    if not hours:
        assert connection.now() - datetime.now(UTC) <= timedelta()
    connection.close()


def test_a_service_that_is_away_is_told_of_at_once_and_taken_for_none_soon(
    monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    url = f"http://127.0.0.1:{port}"
    connection = Connection(url, "token")
    connection.first_patience_s, told = 0.0, list[str]()
    connection.tell = told.append
    with pytest.raises(UnreachableError, match=r"does not answer .*yard up"):
        connection.request("GET", "/jobs")
    assert told == []
    connection.first_patience_s, connection.patience_s = 2.0, 60.0
    with pytest.raises(UnreachableError):
        connection.request("GET", "/jobs", patience_s=30.0)
    assert told == [f"{url} does not answer: trying again for up to 2 s …"]
    assert 2.0 <= clock.monotonic() < 5.0
    connection.close()


def test_a_service_that_has_answered_once_is_waited_for(service: Service) -> None:
    connection = Connection(f"http://127.0.0.1:{service.server_port}", "token")
    connection.first_patience_s, told = 0.0, list[str]()
    connection.tell = told.append
    connection.request("GET", "/jobs")
    service.away = 2
    assert connection.request("GET", "/jobs").status_code == 204
    assert told == [f"{connection.url} does not answer: trying again for up to 20 s …"]
    connection.close()


def removing(*answers: int | None) -> type[BaseHTTPRequestHandler]:
    """A service that answers each try to remove something with the next status, and None with a closed connection."""
    left = list(answers)

    class Removing(BaseHTTPRequestHandler):
        def do_DELETE(self) -> None:
            status = left.pop(0)
            if status is None:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *told: object) -> None:
            """Say nothing."""

    return Removing


@pytest.mark.parametrize("lost", [None, 502, 504])
def test_what_an_earlier_try_removed_is_done(lost: int | None) -> None:
    with connected(removing(lost, 404)) as connection:
        connection.delete("/tokens/tok-1")


@pytest.mark.parametrize("answers", [(404,), (503, 404)])
def test_what_no_try_can_have_removed_is_not_found(answers: tuple[int, ...]) -> None:
    with connected(removing(*answers)) as connection, pytest.raises(NotFoundError):
        connection.delete("/tokens/tok-1")
