"""A real service on a port of its own: in a thread, or as a process where a test kills it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.wait import until
from torchyard import home

if TYPE_CHECKING:  # every test loads this module, and few the service
    from fastapi import FastAPI

    from service.context import Context
    from service.settings import ServiceSettings


@dataclass(kw_only=True)
class Live:
    """A running service; `client` has the administrator's token, `anonymous` none."""

    url: str
    home: Path
    admin_token: str
    client: httpx.Client
    anonymous: httpx.Client
    app: "FastAPI"
    context: "Context"

    def as_token(self, token: str) -> httpx.Client:
        """A client with another token; close it."""
        return connect(self.url, token)

    @property
    def node_token(self) -> str:
        return (self.home / "node.token").read_text().strip()


def connect(url: str, token: str | None) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.Client(base_url=url, headers=headers, timeout=30, trust_env=False, verify=url.startswith("https"))


def settings_for(database_url: str, folder: Path, **changes: Any) -> "ServiceSettings":
    """Settings of a service whose data lie in a folder; the broker is absent unless given."""
    from service.settings import ServiceSettings

    broker = f"redis+socket://{folder / 'no-redis.sock'}"
    base = ServiceSettings(data=folder / "service", database_url=database_url, broker_url=broker, port=0)
    return replace(base, **changes)


@contextmanager
def running(settings: "ServiceSettings") -> Iterator[Live]:
    """Runs the real application under uvicorn in a thread; TORCHYARD_HOME must be the test's own."""
    from service.api.server import Server, address, bind
    from service.app import create_app

    app = create_app(settings)
    listening = bind(settings.host, settings.port)
    server = Server(app)
    thread = threading.Thread(target=server.run, args=([listening],), name="live-service")
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        url, token = address(listening), home.admin_token_file().read_text().strip()
        with connect(url, token) as client, connect(url, None) as anonymous:
            yield Live(
                url=url,
                home=home.root(),
                admin_token=token,
                client=client,
                anonymous=anonymous,
                app=app,
                context=app.state.context,
            )
    finally:
        server.stop()
        thread.join(60)
        assert not thread.is_alive(), "the service did not end"


@pytest.fixture
def yard_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty TORCHYARD_HOME."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("TORCHYARD_HOME", str(folder))
    return folder


@pytest.fixture
def serve(database_url: str, yard_home: Path) -> Callable[..., Any]:
    """``with serve(heartbeat_s=0.2) as live:`` runs a service with changed settings on both databases."""
    return lambda **changes: running(settings_for(database_url, yard_home, **changes))


@pytest.fixture
def live_service(serve: Callable[..., Any]) -> Iterator[Live]:
    """A running service on both databases."""
    with serve() as live:
        yield live


@contextmanager
def process(
    database_url: str, folder: Path, *, open_files: int | None = None, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``python -m service`` as a process of its own; yields it and its URL, and ends it with SIGTERM.

    `open_files` is its limit of open files, which it cannot raise.
    """
    env = {
        **os.environ,
        "TORCHYARD_HOME": str(folder),
        "TORCHYARD_DATABASE_URL": database_url,
        "TORCHYARD_PORT": "0",
        "TORCHYARD_REDIS_URL": f"redis+socket://{folder / 'no-redis.sock'}",
        **environment,
    }
    limited = [] if open_files is None else ["prlimit", f"--nofile={open_files}:{open_files}"]
    child = subprocess.Popen([*limited, sys.executable, "-m", "service"], env=env, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        line = child.stdout.readline()
        assert line.startswith("ready "), f"the service said {line!r}"
        yield child, line.split()[1]
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        child.wait(60)
        child.stdout.close()
