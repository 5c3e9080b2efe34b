"""Stores that a job shares with others: where they are, and which runs in them are the job's."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from torchyard.injob import layout
from torchyard.injob.mlflow import TAG
from torchyard.spec import Tracker
from worker.folder import AttemptFolder
from worker.forward import opening
from worker.trackers import find
from worker.trackers.find import Source

_MARK: Final = re.compile(re.escape(layout.mlflow_mark(0)).replace("0", r"\d{1,6}"))
_MAX_MARK: Final = 2**16
#: Stores of a process that are looked at.
_MAX_STORES: Final = 16


def stores(folder: AttemptFolder, owner: int, searched: Iterable[Path]) -> list[Path]:
    """Databases and folders that MLflow in the job's processes writes to, outside the folders that are searched."""
    inside = [Path(os.path.realpath(base)) for base in searched]
    found = dict.fromkeys(path for words in _marks(folder, owner) for path in _paths(words))
    return [path for path in found if not any(path.is_relative_to(base) for base in inside)]


def _marks(folder: AttemptFolder, owner: int) -> Iterator[bytes]:
    try:
        with opening.folder(folder.path, layout.MARKS) as at:
            for name in opening.names(at):
                if _MARK.fullmatch(name):
                    with opening.file(at, name, owner) as descriptor:
                        yield os.read(descriptor, _MAX_MARK)
    except OSError:
        return


def _paths(words: bytes) -> list[Path]:
    try:
        told = json.loads(words)["stores"]
        return [
            Path(os.path.normpath(path)) for path in told[:_MAX_STORES] if path.startswith("/") and "\0" not in path
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def sources(store: Path) -> list[Source]:
    """The metrics of one of `stores`."""
    if store.is_dir():
        return find.sources(store, {Tracker.MLFLOW})
    return [find.mlflow_database(store.parent, store.name)]


def made_by(source: Source, owner: int, job: str) -> bool:
    """Whether a run of a file store carries the job's tag."""
    try:
        with opening.file_inside(source.base, f"{source.run}/tags/{TAG}", owner) as descriptor:
            return os.read(descriptor, 256).decode(errors="replace").strip() == job
    except OSError:
        return False
