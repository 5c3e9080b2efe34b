"""Stores that a job shares with others: where they are, and which runs in them are the job's."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from torchyard.ids import JobId
from torchyard.injob import layout
from torchyard.injob.mlflow import TAG
from torchyard.spec import Tracker
from worker.attempts import opening
from worker.attempts.folder import AttemptFolder
from worker.trackers import find, marks
from worker.trackers.find import TrackerSource

#: Stores of a process that are looked at.
_MAX_STORES: Final = 16


def stores(folder: AttemptFolder, owner: int, searched: Iterable[Path]) -> list[Path]:
    """Databases and folders that MLflow in the job's processes writes to, outside the folders that are searched."""
    inside = [Path(os.path.realpath(base)) for base in searched]
    told = marks.read(folder, owner, layout.mlflow_mark)
    found = dict.fromkeys(path for content in told for path in _paths(content.get("stores")))
    return [path for path in found if not any(path.is_relative_to(base) for base in inside)]


def _paths(told: Any) -> list[Path]:
    words = [each for each in told if isinstance(each, str)] if isinstance(told, list) else []
    wanted = [each for each in words if each.startswith("/") and "\0" not in each]
    return [Path(os.path.normpath(each)) for each in wanted[:_MAX_STORES]]


def sources(store: Path) -> list[TrackerSource]:
    """The metrics of one of `stores`."""
    if store.is_dir():
        return find.sources(store, {Tracker.MLFLOW})
    return [find.mlflow_database(store.parent, store.name)]


def made_by(source: TrackerSource, owner: int, job: JobId) -> bool:
    """Return whether a run of a file store carries the job's tag."""
    try:
        with opening.file_inside(source.base, f"{source.run}/tags/{TAG}", owner) as descriptor:
            return os.read(descriptor, 256).decode(errors="replace").strip() == job
    except OSError:
        return False
