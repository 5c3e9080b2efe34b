"""Settings of the service, from ``TORCHYARD_*`` variables."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from torchyard import home
from torchyard.quantities import SECONDS, parse_duration, parse_size

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where the service keeps and finds things, and its time-outs in seconds."""

    data: Path
    """Folder of the database (SQLite) and the artifacts."""
    database_url: str
    broker_url: str
    host: str = "127.0.0.1"
    port: int = 8765
    allowed_hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    """Host headers that are answered."""
    behind_proxy: bool = False
    """A proxy in front ends TLS; needed to bind beyond loopback."""
    heartbeat_s: float = 5.0
    unreachable_after_s: float = 60.0
    """Silence after which a node counts as unreachable."""
    republish_after_s: float = 2.0
    """An attempt that stays ASSIGNED is nudged again after this long."""
    unclaimed_after_s: float = 120.0
    """An attempt that nobody claims is voided after this long."""
    unprepared_after_s: float = 1800.0
    """An attempt on several nodes is voided after this long, unless all of them are prepared."""
    disk_floor: int = 2 * 2**30
    """Free bytes below which nothing is launched: on a node, or anywhere if it is the service's own disk."""
    max_body: int = 2**20
    """Bytes of a request body outside uploads and ingest."""
    keep_ended_s: int | None = None
    """So long after its end a job keeps its files (`service.artifacts.discard`), a day at least; None: for ever."""

    @property
    def artifacts(self) -> Path:
        """Blobs, the inbox, and logs."""
        return self.data / "artifacts"

    @classmethod
    def from_environment(cls) -> "Settings":
        """Settings of this process's environment; defaults are those of the embedded stack.

        ValueError for a variable that cannot be read.
        """
        data = home.root() / "service"
        env = os.environ
        return cls(
            data=data,
            database_url=env.get("TORCHYARD_DATABASE_URL") or f"sqlite:///{data / 'torchyard.db'}",
            broker_url=env.get("TORCHYARD_REDIS_URL") or "redis://127.0.0.1:6379/0",
            host=env.get("TORCHYARD_HOST", cls.host),
            port=_read("TORCHYARD_PORT", int, cls.port),
            allowed_hosts=cls.allowed_hosts + tuple(filter(None, env.get("TORCHYARD_ALLOWED_HOSTS", "").split(","))),
            behind_proxy=env.get("TORCHYARD_BEHIND_PROXY", "") == "1",
            heartbeat_s=_read("TORCHYARD_HEARTBEAT_S", float, cls.heartbeat_s),
            unreachable_after_s=_read("TORCHYARD_UNREACHABLE_AFTER_S", float, cls.unreachable_after_s),
            disk_floor=_read("TORCHYARD_DISK_FLOOR", parse_size, cls.disk_floor),
            keep_ended_s=_read("TORCHYARD_KEEP_ENDED", _days, cls.keep_ended_s),
        )


def _read(name: str, read: Callable[[str], Value], default: Value) -> Value:
    text = os.environ.get(name)
    if not text:
        return default
    try:
        return read(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _days(text: str) -> int:
    seconds = parse_duration(text)
    if seconds < SECONDS["d"]:
        raise ValueError(f"{text} is less than a day: say for how long jobs keep their files, such as 90d")
    return seconds
