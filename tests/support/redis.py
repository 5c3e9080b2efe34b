"""A real Redis server on a private socket, and one that accepts connections but never answers."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import redis

from tests.support import wait
from torchyard.network.login import login
from torchyard.stack.redis import find_executable


@dataclass(frozen=True)
class Server:
    """A running server; `url` is what Celery takes."""

    socket: Path
    password: str | None
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        login = f":{quote(self.password, safe='')}@" if self.password else ""
        return f"redis+socket://{login}{self.socket}"

    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket), password=self.password)

    def client_of(self, url: str) -> redis.Redis:
        """A client with the name and password in a URL of the same server."""
        name, _, password = login(url).partition(":")
        return redis.Redis(unix_socket_path=str(self.socket), username=unquote(name), password=unquote(password))


@contextmanager
def serve(folder: Path, password: str | None = None) -> Iterator[Server]:
    """Runs a server on a socket in `folder` (a short path), without persistence."""
    path = folder / "redis.sock"
    command = [find_executable(), "--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no"]
    command += ["--dir", str(folder), *(["--requirepass", password] if password else [])]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Server(path, password, process)
    try:
        with server.client() as client:
            wait.until(lambda: _answers(client), what="Redis")
        yield server
    finally:
        process.terminate()
        process.wait(60)


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


@contextmanager
def black_hole() -> Iterator[str]:
    """URL of a server that accepts connections and never answers, as a network that swallows packets does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
