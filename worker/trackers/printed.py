"""Progress that a job prints, read from the log of its first rank into a journal of its own.

The journal's points are the percentage of the run that is done, with its step and total: the service takes them for
the job's progress where the job reports none itself. A phase, in which something else is counted, is a series of its
own. Where a counter turns out not to be the run's, a last point without a number and without a total takes it back.
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from torchyard.injob import layout
from worker.attempts import opening
from worker.attempts.folder import AttemptFolder
from worker.progress.run import ProgressParser, RunProgress, epochs_of
from worker.trackers.journal import Journal
from worker.trackers.points import TrackerPoint

#: The service knows them by this name (`service.attempts.tracked`).
STREAM: Final = "printed-rank-{rank}.jsonl"
METRIC: Final = "progress"
#: Bytes of a log that are read at once: of a flood the newest; by a worker that starts again, those before its place.
READ: Final = 2**16
#: Seconds between two looks, and between two points: in a long run these come less often.
LOOK_S: Final = 1.0
LONGEST_S: Final = 10.0
#: A point in so many of a run's seconds.
PART: Final = 60
_ENDS: Final = re.compile(r"[\r\n]")
_SOURCE: Final = 0


class PrintedProgress:
    """The printed progress of one attempt; `launch` is its launch file."""

    def __init__(
        self, folder: AttemptFolder, launch: Mapping[str, Any], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._now = now
        self._rank = int(launch.get("first_rank", 0))
        #: Its process on another node prints the same.
        self._reads = int(launch.get("node_rank", 0)) == 0
        self._parser = ProgressParser(epochs_of([str(word) for word in launch.get("argv", ())]))
        self._journal: Journal | None = None
        self._position = 0
        self._torn = ""
        self._seen: RunProgress | None = None
        self._told: RunProgress | None = None
        #: It was read, and its point had to wait.
        self._waits = False
        self._began = now()
        self._due = 0.0
        self._point_due = 0.0

    def pump(self, *, ended: bool) -> None:
        """Read what has been printed and note where the run is. Raises OSError."""
        now = self._now()
        if not self._reads or (now < self._due and not ended):
            return
        self._due = now + LOOK_S
        if not self._read() and not (ended and self._waits):
            return
        found = self._parser.progress()
        settled = found is None or (self._seen is not None and self._seen.phase == found.phase)
        self._seen = found
        self._waits = settled and found != self._told
        if self._waits and (ended or found is None or now >= self._point_due):
            self._waits = False
            self._point_due = now + min(LONGEST_S, max(LOOK_S, (now - self._began) / PART))
            self._tell(found)

    def _log(self) -> Path:
        logs = self._folder.path / layout.LOGS
        ranked = logs / f"rank-{self._rank}.log"
        return ranked if ranked.exists() else logs / layout.LAUNCHER_LOG

    def _read(self) -> bool:
        """Feed the parser with whole lines; False if there are none that an earlier worker has not read."""
        journal = self._open()
        try:
            with opening.plain(self._log()) as descriptor:
                size = os.fstat(descriptor).st_size
                start = max(self._position, size - READ)
                data = os.pread(descriptor, size - start, start)
        except FileNotFoundError:
            return False
        except OSError as error:
            if not opening.strange(error):
                raise
            self._reads = False
            return False
        if not data:
            return False
        text = data.decode(errors="replace")
        *lines, torn = _ENDS.split((self._torn if start == self._position else "") + text)
        self._position, self._torn = start + len(data), torn[-READ:]
        self._parser.feed(lines)
        return self._position > journal.ends.get(_SOURCE, 0)

    def _open(self) -> Journal:
        """Open the journal, and read again what a worker before has read last."""
        if self._journal is None:
            place = self._folder.at(layout.TRACKERS)
            self._journal = Journal(place / STREAM.format(rank=self._rank))
            self._position = max(0, self._journal.ends.get(_SOURCE, 0) - READ)
        return self._journal

    def _tell(self, progress: RunProgress | None) -> None:
        told = self._told
        phase = progress or told
        if phase is None:
            return
        name = METRIC if phase.phase == 1 else f"{METRIC}/phase-{phase.phase}"
        time_us = time.time_ns() // 1000
        if progress is None:
            point = TrackerPoint(self._position, phase.step, time_us, {name: float("nan")})
        else:
            percent = round(100 * progress.step / progress.total, 2)
            point = TrackerPoint(self._position, progress.step, time_us, {name: percent}, total=progress.total)
        self._folder.at(layout.TRACKERS).mkdir(mode=0o700, exist_ok=True)
        self._open().append([(_SOURCE, point)])
        self._told = progress
