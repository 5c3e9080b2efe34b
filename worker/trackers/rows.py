"""Trackers' databases: which rows are new, and which are the job's."""

import logging
import sqlite3
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from torchyard.ids import JobId
from torchyard.spec import Tracker
from worker.trackers import database, mlflow, trackio
from worker.trackers.database import BusyError
from worker.trackers.find import TrackerSource
from worker.trackers.points import Read

#: Looks at a database that is being written, and seconds between them: at the end of the job all of it must be read.
LOOKS: Final = 10
LAST_LOOKS: Final = 200
BETWEEN_S: Final = 0.01

Answer = TypeVar("Answer")

logger = logging.getLogger(__name__)


class Databases:
    """Those of one attempt; `owner` is the user id of the job."""

    def __init__(self, owner: int) -> None:
        self._owner = owner
        #: What each was like when nothing new was in it.
        self._idle: dict[str, tuple[Any, ...]] = {}

    def size(self, source: TrackerSource, job: JobId | None = None) -> int:
        """Number of the newest row, of `job` alone if that is given; 0 where there is none, or none can be read."""
        try:
            stamp = database.stamp(source.base, source.path, self._owner)
            if self._idle.get(source.key) == stamp:
                return 0
            if number := self._last(source, job):
                return number
            self._idle[source.key] = stamp
        except (OSError, sqlite3.Error) as error:
            logger.debug("%s has no rows now: %s", source.key, error)
        return 0

    def _last(self, source: TrackerSource, job: JobId | None) -> int:
        def last(connection: sqlite3.Connection) -> int:
            return trackio.last(connection) if source.kind is Tracker.TRACKIO else mlflow.last_row(connection, job)

        try:
            return self._between(source, LOOKS, last)
        except BusyError:
            raise
        except sqlite3.DatabaseError:  # it is none, or of another program
            return 0

    def read(
        self, source: TrackerSource, start: int, limit: int, job: JobId | None = None, *, ended: bool
    ) -> Read | None:
        """Read what was added behind a row; None if nothing was. Raises OSError and sqlite3.Error."""

        def rows(connection: sqlite3.Connection) -> Read:
            if source.kind is Tracker.TRACKIO:
                return trackio.read(connection, start, limit)
            return mlflow.read_rows(connection, start, limit, job)

        stamp = database.stamp(source.base, source.path, self._owner)
        if self._idle.get(source.key) == stamp and not ended:
            return None
        read = self._between(source, LAST_LOOKS if ended else LOOKS, rows)
        if read.end > start:
            return read
        self._idle[source.key] = stamp
        return None

    def _between(self, source: TrackerSource, looks: int, ask: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """An answer from between two transactions."""
        while True:
            try:
                with database.opened(source.base, source.path, self._owner) as connection:
                    return ask(connection)
            except BusyError:
                looks -= 1
                if not looks:
                    raise
                time.sleep(BETWEEN_S)
