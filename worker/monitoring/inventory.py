"""Inventory of a node: every attempt folder and the phase it is in."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from torchyard.ids import AttemptId
from torchyard.injob import layout
from torchyard.wire import Phase
from worker.attempts import files
from worker.attempts.folder import AttemptFolder, ShimRecord
from worker.monitoring import processes
from worker.shim.files import steady_us

logger = logging.getLogger(__name__)


class Died(StrEnum):
    """Beyond `wire.Phase`: a phase that ends as soon as the worker has finalized the attempt."""

    #: Started, nobody holds the lock, no result: the shim is dead.
    DIED = "died"


@dataclass(frozen=True, kw_only=True)
class Status:
    """One attempt of this node."""

    attempt: AttemptId
    phase: Phase | Died
    shim: ShimRecord | None = None
    #: UUIDs of its devices, once it has been prepared.
    devices: tuple[str, ...] = ()
    #: How long its devices have been held since its claim, by the steady clock of this boot.
    held_us: int | None = None
    #: Bytes that it may use of each of them, where it shares them.
    gpu_share: int | None = None
    #: None of its ranks has joined a process group, although it has had the time.
    unjoined: bool = False

    @property
    def started_us(self) -> int | None:
        """Time of the job's first instruction, in microseconds UTC."""
        return self.shim.started_us if self.shim else None

    @property
    def living(self) -> bool:
        """Return whether a shim of this very boot guards it, so that `shim.pid` is the shim's."""
        return self.shim is not None and self.phase in {Phase.RUNNING, Phase.STOPPING}


def scan(attempts: Path) -> list[Status]:
    """All attempts of a node, oldest first."""
    return sorted(_statuses(attempts), key=lambda status: status.attempt)


def _statuses(attempts: Path) -> Iterator[Status]:
    for path in attempts.iterdir() if attempts.exists() else ():
        folder = _attempt(path)
        if folder is not None:
            yield _status(folder)


def _attempt(path: Path) -> AttemptFolder | None:
    """The attempt that a path is; None for anything else that lies there, ``lost+found`` of a mounted disk say."""
    try:
        return AttemptFolder(path.parent, AttemptId(path.name)) if path.is_dir() else None
    except (OSError, ValueError):
        return None


def _status(folder: AttemptFolder) -> Status:
    """Return the status, also of a folder that cannot be read: what the inventory leaves out would count as dead."""
    try:
        return status_of(folder)
    except (OSError, ValueError) as error:
        logger.warning("%s: its folder cannot be read: %s", folder.attempt_id, error)
        return Status(attempt=folder.attempt_id, phase=Phase.PREPARING)


def status_of(folder: AttemptFolder) -> Status:
    """The phase of one attempt, with what its shim wrote."""
    phase = _phase(folder)
    if phase is Phase.PREPARING:
        return Status(attempt=folder.attempt_id, phase=phase)
    launch = folder.read_launch() or {}
    return Status(
        attempt=folder.attempt_id,
        phase=phase,
        shim=folder.read_shim(),
        devices=tuple(launch.get("devices", ())),
        held_us=_held_us(launch),
        gpu_share=launch.get("gpu_share"),
        unjoined=folder.at(layout.UNJOINED).exists(),
    )


def _held_us(launch: dict[str, Any]) -> int | None:
    claimed = launch.get("claimed_steady_us")
    return None if claimed is None or launch.get("boot_id") != processes.boot_id() else steady_us() - claimed


def _phase(folder: AttemptFolder) -> Phase | Died:
    if folder.has_result():
        return Phase.ENDED
    if folder.locked():
        return _living(folder) if folder.started() else Phase.PREPARING
    # The shim may have written its result and left since the first look.
    if folder.has_result():
        return Phase.ENDED
    return Died.DIED if folder.started() else Phase.PREPARING


def _living(folder: AttemptFolder) -> Phase:
    if not folder.at(layout.SHIM).exists():
        return Phase.PREPARING
    control = files.read_json(folder.at(layout.CONTROL)) or {}
    return Phase.STOPPING if control.get("action") == "stop" else Phase.RUNNING


def whole(attempts: Path) -> list[Status]:
    """Scan, and add attempts whose folder somebody took away while their processes live: they count as running,
    since what an inventory lacks is proven dead.
    """
    found = {status.attempt: status for status in scan(attempts)}
    for attempt in processes.attempts_alive(attempts) - found.keys():
        folder = _attempt(attempts / attempt)
        found[attempt] = _status(folder) if folder else Status(attempt=attempt, phase=Phase.RUNNING)
    return [found[attempt] for attempt in sorted(found)]
