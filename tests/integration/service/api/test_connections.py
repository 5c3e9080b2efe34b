"""Clients that keep the service waiting, in a number beyond the files that it may open."""

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from service.api import connections
from tests.support import scripted
from tests.support.live import Live, connect, process
from torchyard import home

FILES, HALF = 1024, 2000


@pytest.fixture
def many_files() -> Iterator[None]:
    """As many open files as the test needs for its own ends of the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, HALF + 1000)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def opened(url: str, receive_buffer: int | None = None) -> socket.socket:
    """A bare connection to the service."""
    place = urlsplit(url)
    made = socket.socket()
    if receive_buffer:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    made.settimeout(30)
    made.connect((str(place.hostname), int(place.port or 0)))
    return made


@contextmanager
def polled(url: str, token: str) -> Iterator[None]:
    """Somebody who asks on a fresh connection each time, and ten times more at the end, and is always answered."""
    over, seen = threading.Event(), list[int]()

    def poll() -> None:
        left = 10
        while left:
            left -= over.is_set()
            with connect(url, token) as client:
                seen.append(client.get("/api/v1/jobs").status_code)

    poller = threading.Thread(target=poll)
    poller.start()
    try:
        yield
    finally:
        over.set()
        poller.join(60)
    assert len(seen) >= 10
    assert set(seen) == {200}


@pytest.mark.usefixtures("many_files")
def test_half_sent_requests_beyond_all_files_disturb_nobody(tmp_path: Path, yard_home: Path) -> None:
    database = f"sqlite:///{tmp_path / 'yard.db'}"
    with process(database, yard_home, open_files=FILES) as (service, url), ExitStack() as held:
        token = home.admin_token_file().read_text().strip()
        with polled(url, token):
            for number in range(HALF):
                held.enter_context(opened(url)).sendall((b"GET /api/v1/jobs HTTP/1.1\r\nHost: x", b"")[number % 2])
        # Held connections cost no time: ten answers and the loops beside them need far less than half a core.
        begun, used = time.monotonic(), sum(psutil.Process(service.pid).cpu_times()[:2])
        with connect(url, token) as client:
            while time.monotonic() - begun < 1:
                assert client.get("/healthz").status_code == 200
                threading.Event().wait(0.1)
        spent = sum(psutil.Process(service.pid).cpu_times()[:2]) - used
        assert spent < 0.5


def test_answers_that_nobody_reads_disturb_nobody(live_service: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 16)
    full, pause = threading.Semaphore(0), connections.TimedConnection.pause_writing
    monkeypatch.setattr(connections.TimedConnection, "pause_writing", lambda self: (pause(self), full.release()))
    with scripted.agent(live_service) as agent, ExitStack() as held:
        agent.register()
        spec = {"command": ["true"], "launcher": "none"}
        job = live_service.client.post("/api/v1/jobs", json=spec).json()["id"]
        agent.start().checkpoint(1, {"state.pt": bytes(8 * 2**20)})
        checkpoint = live_service.client.get(f"/api/v1/jobs/{job}/checkpoints").json()[0]["id"]
        path = f"/api/v1/checkpoints/{checkpoint}/files/state.pt"
        head = f"Host: {urlsplit(live_service.url).netloc}\r\nAuthorization: Bearer {live_service.admin_token}"
        with polled(live_service.url, live_service.admin_token):
            for _ in range(40):
                unread = held.enter_context(opened(live_service.url, 4096))
                unread.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n\r\n".encode())
                assert full.acquire(timeout=30)


def test_a_request_that_does_not_go_on_is_closed(live_service: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    head = f"POST /api/v1/session HTTP/1.1\r\nHost: {urlsplit(live_service.url).netloc}\r\n".encode()
    with monkeypatch.context() as hasty:
        hasty.setattr(connections, "HEAD_S", 0.2)
        hasty.setattr(connections, "BODY_PAUSE_S", 0.2)
        for sent in (b"", head, head + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"):
            with opened(live_service.url) as half:
                half.sendall(sent)
                with suppress(ConnectionResetError):
                    assert half.recv(1) == b""
    assert live_service.client.get("/api/v1/jobs").status_code == 200
