"""Settings of a worker, from its arguments and ``TORCHYARD_*`` variables."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from torchyard import home
from torchyard.injob import layout
from torchyard.quantities import parse_size
from torchyard.spec import Resources
from worker.exceptions import UnavailableError
from worker.forward.written import OutputLimits


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """Settings of one worker."""

    name: str
    """The node's name."""
    home: Path
    """Folder of the attempts and caches; on a local disk."""
    url: str | None = None
    """The service; without it the one that runs in ``TORCHYARD_HOME``."""
    token_file: Path
    """File of the node token."""
    cpu_slots: int | None = None
    """CPU slots to offer where there is no GPU; None: as many as fit."""
    redis_url: str | None = None
    """Redis, where it is reached otherwise than the service says."""
    one_trust_domain: bool = False
    """A worker that is not root may run every user's jobs."""
    labels: tuple[str, ...] = ()
    """Words that jobs may ask for (`resources.labels`)."""
    disk_floor: int | None = None
    """Bytes that this node's disk keeps free; None: what the service says."""
    limits: OutputLimits = field(default_factory=OutputLimits)
    """How much of what a job writes goes to the store by itself."""

    @property
    def attempts(self) -> Path:
        """Hold one folder for each attempt."""
        return self.home / "attempts"

    def address(self) -> str:
        """The service's URL; raises `UnavailableError` while it is not known."""
        found = self.url or (home.read_address() or {}).get("url")
        if not found:
            raise UnavailableError(f"no service has run in {home.root()} yet: start `yard up`, or give --join URL")
        return str(found)

    def token(self) -> str:
        """The node token; raises `UnavailableError` while there is none."""
        try:
            token = self.token_file.read_text().strip()
        except OSError as error:
            raise UnavailableError(f"the node token cannot be read: {error}; give --token-file FILE") from error
        if not token:
            raise UnavailableError(f"{self.token_file} is empty: put the node's token into it")
        return token


def from_environment(
    *,
    name: str | None,
    join: str | None,
    token_file: Path | None,
    folder: Path | None,
    cpu_slots: int | None,
    labels: Sequence[str] | None = None,
) -> WorkerSettings:
    """Settings of this process: arguments first, then its environment, then the embedded stack's defaults.

    ValueError for a label that no job could ask for, and for limits that are none.
    """
    env = os.environ
    slots = env.get("TORCHYARD_CPU_SLOTS")
    return WorkerSettings(
        name=name or home.node_name(),
        home=(folder or home.worker_folder()).absolute(),
        url=join or env.get("TORCHYARD_URL"),
        token_file=token_file or Path(env.get("TORCHYARD_NODE_TOKEN_FILE") or home.node_token_file()),
        cpu_slots=cpu_slots if cpu_slots is not None else int(slots) if slots else None,
        redis_url=env.get("TORCHYARD_REDIS_URL"),
        one_trust_domain=env.get("TORCHYARD_ONE_TRUST_DOMAIN") == "1",
        disk_floor=_disk_floor(env),
        labels=_labels(env.get("TORCHYARD_LABELS", "").split(",") if labels is None else labels),
        limits=_limits(env),
    )


def _disk_floor(env: Mapping[str, str]) -> int | None:
    given = env.get(layout.DISK_FLOOR)
    try:
        return parse_size(given) if given else None
    except ValueError as error:
        raise ValueError(f"{layout.DISK_FLOOR}: {error}") from error


def _limits(env: Mapping[str, str]) -> OutputLimits:
    usual = OutputLimits()
    try:
        return OutputLimits(
            total=parse_size(env.get("TORCHYARD_OUTPUT_LIMIT") or usual.total),
            every_s=float(env.get("TORCHYARD_OUTPUT_EVERY_S") or usual.every_s),
        )
    except ValueError as error:
        raise ValueError(f"TORCHYARD_OUTPUT_LIMIT, TORCHYARD_OUTPUT_EVERY_S: {error}") from error


def _labels(given: Sequence[str]) -> tuple[str, ...]:
    labels = tuple(dict.fromkeys(filter(None, map(str.strip, given))))
    try:
        return Resources(labels=labels).labels
    except ValidationError as error:
        problem = error.errors()[0]
        raise ValueError(f"labels: {problem['input']!r}: {problem['msg']}") from error
