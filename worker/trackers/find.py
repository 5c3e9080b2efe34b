"""Finding trackers' files below a job's folder, by their names alone."""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from torchyard.spec import Tracker
from worker.attempts import opening

#: Names that are looked at in one search: a folder of data sets must not keep the node busy.
MAX_ENTRIES: Final = 50_000
MAX_DEPTH: Final = 24
_NEVER: Final = frozenset({".git", "__pycache__", "node_modules", "site-packages"})
_EVENTS: Final = re.compile(r".*events\.out\.tfevents\.(\d+)\.(.+?)\.(\d+)\.(\d+)(?:\..*)?")
#: As TensorFlow names them, without a process.
_OTHER_EVENTS: Final = re.compile(r".*events\.out\.tfevents\.(\d+)\.(.+)")
_WANDB: Final = re.compile(r"(?:.*/)?(?:offline-)?run-(\d{8}_\d{6})-([^/]+)/run-[^/]+\.wandb")
_DATABASES: Final = (".db", ".sqlite", ".sqlite3")
_MLFLOW: Final = re.compile(r"((?:.*/)?[^/]+/([0-9a-f]{32}))/metrics/(.+)")


@dataclass(frozen=True, kw_only=True)
class TrackerSource:
    """A file that a tracker writes."""

    kind: Tracker
    base: Path
    #: Below `base`.
    path: str
    #: The tracker's own run that it belongs to: a folder, or an id.
    run: str
    #: The first run of a process has the smallest.
    order: tuple[Any, ...] = ()
    #: The process and host that write it, where its name tells.
    pid: int | None = None
    host: str | None = None
    #: The only metric in it.
    metric: str = ""
    #: A SQLite database, of several runs.
    database: bool = False

    @property
    def key(self) -> str:
        return f"{self.base}/{self.path}"


def sources(
    base: Path, kinds: Collection[Tracker], *, skip: Collection[str] = (), trackio: Path | None = None
) -> list[TrackerSource]:
    """The trackers' files below a folder, without its own folders of the names in `skip`.

    `trackio` is the folder in which Trackio keeps its databases.
    """
    found = (_source(base, path, trackio) for path in walk(base, skip))
    return [source for source in found if source is not None and source.kind in kinds]


def _source(base: Path, path: str, trackio: Path | None) -> TrackerSource | None:
    folder, name = os.path.split(path)
    if ".tfevents." in name:
        return _events(base, path, folder, name)
    if name.endswith(".wandb") and (match := _WANDB.fullmatch(path)):
        return TrackerSource(kind=Tracker.WANDB, base=base, path=path, run=match[2], order=(match[1], match[2]))
    if "/metrics/" in path and (match := _MLFLOW.fullmatch(path)):
        return TrackerSource(kind=Tracker.MLFLOW, base=base, path=path, run=match[1], metric=match[3])
    if name.endswith(".db") and base / folder == trackio:
        run = name.removesuffix(".db")
        return TrackerSource(kind=Tracker.TRACKIO, base=base, path=path, run=run, order=(name,), database=True)
    return mlflow_database(base, path) if name.endswith(_DATABASES) else None


def mlflow_database(base: Path, path: str) -> TrackerSource:
    """Find files that may be a database of MLflow's: only its tables tell."""
    return TrackerSource(kind=Tracker.MLFLOW, base=base, path=path, run=path, order=(0, path), database=True)


def _events(base: Path, path: str, folder: str, name: str) -> TrackerSource | None:
    if match := _EVENTS.fullmatch(name):
        order = (int(match[1]), int(match[3]), int(match[4]), folder)
        about: dict[str, Any] = {"pid": int(match[3]), "host": match[2]}
    elif match := _OTHER_EVENTS.fullmatch(name):
        order, about = (int(match[1]), 0, 0, folder), {}
    else:
        return None
    return TrackerSource(kind=Tracker.TENSORBOARD, base=base, path=path, run=folder, order=order, **about)


def walk(base: Path, skip: Collection[str] = ()) -> Iterator[str]:
    """Paths of the regular files below a folder, relative to it; links are not followed."""
    pending, left = [""], MAX_ENTRIES
    while pending and left > 0:
        inside = pending.pop()
        folders, names = _list(base, inside)
        left -= len(folders) + len(names)
        yield from (inside + name for name in names)
        if inside.count("/") < MAX_DEPTH:
            pending += [f"{inside}{name}/" for name in folders if name not in _NEVER and (inside or name not in skip)]


def _list(base: Path, inside: str) -> tuple[list[str], list[str]]:
    folders, names = list[str](), list[str]()
    try:
        with opening.folder(base, inside) as at, os.scandir(at) as entries:
            for entry in entries:
                if not entry.name.isprintable():
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    names.append(entry.name)
    except OSError:
        return [], []
    return folders, sorted(names)
