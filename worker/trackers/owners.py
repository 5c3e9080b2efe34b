"""Telling which process of an attempt writes a tracker's file, and of which run."""

import os
import re
from pathlib import Path
from typing import Any, Final

from torchyard.injob import layout
from torchyard.spec import Tracker
from worker.attempts import opening
from worker.attempts.folder import AttemptFolder
from worker.monitoring import processes
from worker.trackers.find import TrackerSource

_MARK: Final = re.compile(r"pid-(\d{1,6})")
_WANDB_PID: Final = re.compile(rb"[A-Za-z]+Thread[^:\n]*:(\d+)")
_START: Final = re.compile(rb"^start_time: (\d+)", re.MULTILINE)
_HEAD: Final = 4096


class Owners:
    """The processes of an attempt on this node, by rank; those that have ended are remembered."""

    def __init__(self, folder: AttemptFolder, owner: int, first_rank: int) -> None:
        self._folder = folder
        self._owner = owner
        self._first_rank = first_rank
        self._ranks: dict[int, int] = {}

    def rank(self, pid: int | None) -> int | None:
        """The rank that a process is, or belongs to; None if it is none of this attempt's."""
        if pid is None:
            return None
        if pid not in self._ranks:
            self._look()
        return self._ranks.get(pid)

    def _look(self) -> None:
        for process in processes.of_attempt(self._folder.attempt_id):
            rank = next((entry[5:] for entry in process.environment() if entry.startswith(b"RANK=")), b"")
            self._ranks[process.pid] = int(rank) if rank.isdigit() else self._first_rank
        shim = self._folder.read_shim()
        if shim is not None:
            self._ranks.setdefault(shim.child_pid, self._first_rank)
        self._ranks |= self._marked()

    def _marked(self) -> dict[int, int]:
        """Return the pids that the ranks' wrappers have noted."""
        found = dict[int, int]()
        try:
            with opening.folder(self._folder.path, layout.MARKS) as at:
                for name in opening.names(at):
                    if match := _MARK.fullmatch(name):
                        with opening.file(at, name, self._owner) as descriptor:
                            said = os.read(descriptor, 20)
                        found |= {int(said): int(match[1])} if said.isdigit() else {}
        except OSError:
            pass
        return found


def pid_of(source: TrackerSource, owner: int) -> int | None:
    """The process that writes a source, where that can be told from files."""
    if source.kind is Tracker.WANDB:
        match = _WANDB_PID.search(_head(source.base, f"{Path(source.path).parent}/logs/debug.log", owner))
        return int(match[1]) if match else None
    return source.pid


def started(source: TrackerSource, owner: int) -> tuple[Any, ...]:
    """Sort key of the runs of one tracker."""
    if source.kind is Tracker.MLFLOW:
        match = _START.search(_head(source.base, f"{source.run}/meta.yaml", owner))
        return (int(match[1]) if match else 0, source.run)
    return source.order


def label(source: TrackerSource, first_run: str, owner: int) -> str:
    """Prefix of the names of a run that is not the first."""
    if source.kind is Tracker.TENSORBOARD:
        return _folder_label(source.run, first_run)
    if source.kind is Tracker.MLFLOW:
        name = _head(source.base, f"{source.run}/tags/mlflow.runName", owner).decode(errors="replace").strip()
        return name or Path(source.run).name
    return source.run


def _folder_label(folder: str, first: str) -> str:
    """The folder as seen from the first run's, without the way up."""
    parts = [part for part in os.path.relpath(f"/{folder}", f"/{first}").split("/") if part != ".."]
    return "/".join(parts) or Path(folder).name or "."


def _head(base: Path, path: str, owner: int) -> bytes:
    try:
        with opening.file_inside(base, path, owner) as descriptor:
            return os.read(descriptor, _HEAD)
    except OSError:
        return b""
