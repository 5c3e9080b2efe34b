"""Translation of an attempt's tracker files into the journals that are forwarded.

    search ──> settle rank and name's prefix of new files ──> read what has been added ──> journal

Each step can be done again: a worker that was killed anywhere goes on from what is on the disk.
"""

import logging
import os
import socket
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from torchyard.ids import JobId
from torchyard.injob import layout
from torchyard.spec import Tracker
from worker.attempts import opening
from worker.attempts.folder import AttemptFolder
from worker.trackers import find, marks, mlflow, owners, shared, tensorboard, wandb
from worker.trackers.find import TrackerSource
from worker.trackers.journal import Journal
from worker.trackers.points import Chunk, Read, TrackerPoint
from worker.trackers.rows import Databases
from worker.trackers.state import TrackerState

#: Bytes of a file, and records of it, that are read at once.
READ: Final = 2**19
LIMIT: Final = 2000
#: Records of all files that are read at once.
AT_ONCE: Final = 10_000
#: Seconds between two looks, and so many times as long as a look took, if that is more.
EVERY_S: Final = 0.5
REST: Final = 10
#: Files of one attempt that are read.
MAX_SOURCES: Final = 4096
#: Folders of ours below the job's.
OURS: Final = tuple(Path(name).name for name in (layout.METRICS, layout.MARKS, layout.CHECKPOINTS))
#: A file's clock may be this much behind the one that the start was taken with.
_SKEW_S: Final = 2

logger = logging.getLogger(__name__)


class Translator:
    """The trackers of one attempt; `launch` is its launch file, `owner` the user id of the job."""

    def __init__(
        self, folder: AttemptFolder, launch: Mapping[str, Any], owner: int, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._owner = owner
        self._now = now
        self._kinds = tuple(map(Tracker, launch.get("trackers", ())))
        self._places = places(folder, launch)
        self._first_rank = int(launch.get("first_rank", 0))
        self._ranked = int(launch.get("local_world_size", 1)) > 1
        self._owners = owners.Owners(folder, owner, self._first_rank)
        self._databases = Databases(owner)
        self._job = JobId(str(launch.get("env", {}).get(layout.JOB_ID, "")))
        self._state = TrackerState.load(folder.path)
        self._journals: dict[str, Journal] = {}
        self._known: dict[str, TrackerSource] = {}
        #: How far each source has been read, as far as that is more than its journal says.
        self._ends: dict[int, int] = {}
        self._due = 0.0
        self._searched_last = False
        self._skipped = 0

    @property
    def skipped(self) -> int:
        """Records that could not be read."""
        return self._skipped + sum(journal.skipped for journal in self._journals.values())

    @property
    def runs(self) -> dict[str, list[str]] | None:
        """Ids of the runs that the job made, by tracker; None where nobody looked."""
        return self._state.runs if self._state is not None else None

    def pump(self, *, ended: bool) -> bool:
        """Read what has been added, within bounds; True while more is waiting. Raises OSError."""
        began = self._now()
        if self._state is None or not self._kinds or (began < self._due and not ended):
            return False
        if not (ended and self._searched_last):
            self._search(self._state)
            self._searched_last = ended
        more = self._read_all(self._state, ended)
        took = self._now() - began
        self._due = began if more else began + max(EVERY_S, REST * took)
        return more

    def _search(self, state: TrackerState) -> None:
        """Look for new files; those that were there before the job began count once they have grown."""
        new = []
        for source in self._found():
            if source.key in state.sources:
                self._known.setdefault(source.key, source)
            elif self._is_ours(source) and self._size(source) > state.baseline.get(source.key, 0):
                new.append(source)
        if not new:
            return
        for source in sorted(new, key=lambda each: (each.kind, owners.started(each, self._owner)))[:MAX_SOURCES]:
            self._settle(state, source)
        state.save(self._folder.path)

    def _found(self) -> Iterator[TrackerSource]:
        for base, (skip, trackio_folder) in self._places.items():
            yield from find.sources(base, self._kinds, skip=skip, trackio=trackio_folder)
        if Tracker.MLFLOW in self._kinds:
            for store in shared.stores(self._folder, self._owner, self._places):
                yield from shared.sources(store)

    def _is_own(self, source: TrackerSource) -> bool:
        """Return whether nobody else writes there."""
        return source.base == self._folder.at(layout.JOB)

    def _is_ours(self, source: TrackerSource) -> bool:
        """Return whether this attempt writes it: where others write too, its process tells, or its tag."""
        if self._is_own(source):
            return True
        if source.kind is Tracker.MLFLOW:
            return source.database or shared.made_by(source, self._owner, self._job)
        if source.kind is Tracker.TENSORBOARD and (source.host != socket.gethostname() or not self._is_recent(source)):
            return False
        return self._owners.rank(owners.pid_of(source, self._owner)) is not None

    def _is_recent(self, source: TrackerSource) -> bool:
        shim = self._folder.read_shim()
        return shim is None or source.order[0] >= shim.started_us // 1_000_000 - _SKEW_S

    def _began_us(self) -> int:
        """MLflow's clock has milliseconds."""
        shim = self._folder.read_shim()
        return 0 if shim is None else shim.started_us // 1000 * 1000

    def _settle(self, state: TrackerState, source: TrackerSource) -> None:
        if len(state.sources) >= MAX_SOURCES:
            return
        rank = self._owners.rank(owners.pid_of(source, self._owner)) if self._ranked else None
        stream = f"{source.kind}-rank-{self._first_rank if rank is None else rank}.jsonl"
        prefix = ""
        if not source.database:
            first = state.first_runs.setdefault(stream, source.run)
            prefix = "" if source.run == first else owners.label(source, first, self._owner) + "/"
            runs = state.runs.setdefault(source.kind, [])
            run = Path(source.run).name
            runs += [run] if run not in runs else []
        state.sources[source.key] = {"number": len(state.sources), "stream": stream, "prefix": prefix}
        self._known[source.key] = source

    def _read_all(self, state: TrackerState, ended: bool) -> bool:
        found: defaultdict[str, list[tuple[int, Read]]] = defaultdict(list)
        left, more = AT_ONCE, False
        for key, source in self._known.items():
            about = state.sources[key]
            number, stream = about["number"], about["stream"]
            start = self._end(number, stream, state.baseline.get(key, 0))
            read, unread = self._read(source, start, ended)
            if read is None:
                continue
            if source.kind is Tracker.MLFLOW and not self._is_own(source):
                read.points = [point for point in read.points if point.time_us >= self._began_us()]
            self._name(state, read, source, about)
            found[stream].append((number, read))
            left, more = left - len(read.points), more or unread
            if left <= 0:
                more = True
                break
        for stream, reads in found.items():
            self._journal(stream).append((number, point) for number, read in reads for point in read.points)
            for number, read in reads:
                self._ends[number] = read.end
                self._skipped += read.skipped
        return more

    def _end(self, number: int, stream: str, baseline: int) -> int:
        known = self._ends.get(number)
        return self._journal(stream).ends.get(number, baseline) if known is None else known

    def _journal(self, stream: str) -> Journal:
        if stream not in self._journals:
            self._journals[stream] = Journal(self._folder.at(layout.TRACKERS) / stream)
        return self._journals[stream]

    def _name(self, state: TrackerState, read: Read, source: TrackerSource, about: Mapping[str, Any]) -> None:
        """Give what is reported its name there, and names of runs other than the first a prefix."""
        if read.points and (names := marks.renamed(self._folder, self._owner).get(source.kind)):
            read.points = [_renamed(point, names) for point in read.points]
        if source.database:
            read.points = [self._of_run(state, point, source, about["stream"]) for point in read.points]
        elif about["prefix"]:
            read.points = [_prefixed(point, about["prefix"]) for point in read.points]

    def _of_run(self, state: TrackerState, point: TrackerPoint, source: TrackerSource, stream: str) -> TrackerPoint:
        run = f"{source.run}/{point.run}"
        if stream not in state.first_runs:
            state.first_runs[stream] = run
            state.save(self._folder.path)
        return point if run == state.first_runs[stream] else _prefixed(point, f"{point.label or point.run}/")

    def _read(self, source: TrackerSource, start: int, ended: bool) -> tuple[Read | None, bool]:
        """Read what was added to a source, and whether there is more; None if nothing was."""
        try:
            if source.database:
                rows = self._databases.read(source, start, LIMIT, self._tagged(source), ended=ended)
                return rows, rows is not None and len(rows.points) + rows.skipped >= LIMIT
            with opening.file_inside(source.base, source.path, self._owner) as descriptor:
                size = os.fstat(descriptor).st_size
                start = start if start <= size else 0  # written anew
                if size == start:
                    return None, False
                chunk = Chunk(data=os.pread(descriptor, READ, start), at=start, size=size, ended=ended)
        except (OSError, sqlite3.Error) as error:
            log = logger.warning if ended else logger.debug
            log("%s is not read now: %s", source.key, error)
            return None, False
        read = _READERS[source.kind](chunk, source)
        return (read, read.end < size) if read.end > start else (None, False)

    def _tagged(self, source: TrackerSource) -> JobId | None:
        """The job whose runs alone count, in a store that others use too."""
        return None if self._is_own(source) else self._job

    def _size(self, source: TrackerSource) -> int:
        if source.database:
            return self._databases.size(source, self._tagged(source))
        return size_of(source, self._owner)


_READERS: Final[Mapping[Tracker, Callable[[Chunk, TrackerSource], Read]]] = {
    Tracker.TENSORBOARD: lambda chunk, _: tensorboard.read(chunk, LIMIT),
    Tracker.WANDB: lambda chunk, _: wandb.read(chunk, LIMIT),
    Tracker.MLFLOW: lambda chunk, source: mlflow.read(chunk, LIMIT, source.metric),
}


def _renamed(point: TrackerPoint, names: Mapping[str, str]) -> TrackerPoint:
    return point._replace(values={names.get(name, name): value for name, value in point.values.items()})


def _prefixed(point: TrackerPoint, prefix: str) -> TrackerPoint:
    return point._replace(values={prefix + name: value for name, value in point.values.items()})


def places(folder: AttemptFolder, launch: Mapping[str, Any]) -> dict[Path, tuple[tuple[str, ...], Path | None]]:
    """Return where trackers' files are looked for: each folder with the names to leave out, and Trackio's folder."""
    job = folder.at(layout.JOB)
    chosen = launch.get("env", {}).get("TRACKIO_DIR")
    trackio_folder = Path(os.path.normpath(Path(launch.get("cwd", "/"), chosen))) if chosen else None
    found: dict[Path, tuple[tuple[str, ...], Path | None]] = {job: (OURS, trackio_folder)}
    if launch.get("live"):
        found[Path(launch["live"]).resolve()] = ((), None)
    return found


def prepare(folder: AttemptFolder, launch: Mapping[str, Any], owner: int) -> None:
    """Note what of trackers' files is there before the job begins; for the launcher. Raises OSError.

    It survives a power cut once a file of the job's is found, before any point depends on it: each start would wait.
    """
    kinds = tuple(map(Tracker, launch["trackers"]))
    if not kinds:
        return
    job = folder.at(layout.JOB)
    skip, trackio_folder = places(folder, launch)[job]
    found = find.sources(job, kinds, skip=skip, trackio=trackio_folder)
    TrackerState(baseline={source.key: size_of(source, owner) for source in found}).save(folder.path, durable=False)


def size_of(source: TrackerSource, owner: int) -> int:
    """Bytes of a source, or rows of a database; 0 if it cannot be read."""
    if source.database:
        return Databases(owner).size(source)
    try:
        with opening.file_inside(source.base, source.path, owner) as descriptor:
            return os.fstat(descriptor).st_size
    except OSError as error:
        logger.debug("%s has no size: %s", source.key, error)
        return 0
