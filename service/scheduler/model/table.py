"""Jobs as columns of numbers, so that ordering a hundred thousand of them is a handful of numpy calls."""

from enum import IntEnum

import numpy as np

from service.scheduler.model.columns import Floats, Ints, grown
from torchyard.ids import JobId

_ROOM = 64


class Column(IntEnum):
    """Columns of the table; times are microseconds.

    Values that change with time take two columns: the value at moment 0, and its change in each microsecond.
    """

    #: Time since it could first have started.
    AGE = 0
    #: Time that it has waited.
    WAITED = 1
    #: Time that it has run.
    RAN = 2
    #: Remaining running time by its own progress (or an oracle); NaN: not known.
    LEFT = 3
    #: 1.
    AGES = 4
    #: 1 if it waits still.
    WAITS = 5
    #: 1 if it runs.
    RUNS = 6
    #: -1 if it runs, and what is left is known.
    SHRINKS = 7
    #: Remaining running time, if its own progress does not tell: as long as it has run, within these bounds.
    LEAST = 8
    MOST = 9
    #: Running time of a waiting job that five of ten such jobs stay below, or its limit; else infinite.
    BOUND = 10
    #: Moment from which on it may be preempted, apart from `min_run`; infinite if it waits, or cannot be preempted.
    SPARED = 11
    #: Moment at which its devices were allocated.
    SINCE = 12
    #: 1 if it waits and is eligible.
    QUEUED = 13
    NUMBER = 14
    PRIORITY = 15
    #: Moment up to which it may be preempted: the end of its trial if it would start over then; else infinite.
    UNTIL = 16


#: Columns that change with time.
_MOVING = 4


class Table:
    """Table with one row for each job, without gaps: the last row moves into the place of one that is removed."""

    def __init__(self) -> None:
        self.jobs: list[JobId] = []
        self.rows: dict[JobId, int] = {}
        self._values: Floats = np.zeros((len(Column), _ROOM))
        self._class_ids: Ints = np.zeros((1, _ROOM), dtype=np.intp)
        self._set_views()

    def __len__(self) -> int:
        return len(self.jobs)

    def add(self, job: JobId, class_id: int, values: tuple[float, ...]) -> None:
        """Add a row for a job that has none yet."""
        row = len(self.jobs)
        if row == self._values.shape[1]:
            self._values = grown(self._values, row + 1)
            self._class_ids = grown(self._class_ids, row + 1)
        self.jobs.append(job)
        self.rows[job] = row
        self._set_views()
        self.change(row, class_id, values)

    def change(self, row: int, class_id: int, values: tuple[float, ...]) -> None:
        """Replace the values of a row."""
        self.columns[:, row] = values
        self.class_id[row] = class_id

    def remove(self, job: JobId) -> int:
        """Remove the job's row and return the number of its equivalence class."""
        row = self.rows.pop(job)
        class_id = int(self.class_id[row])
        last = self.jobs.pop()
        if last != job:
            self.jobs[row] = last
            self.rows[last] = row
            self.columns[:, row] = self.columns[:, -1]
            self.class_id[row] = self.class_id[-1]
        self._set_views()
        return class_id

    def _set_views(self) -> None:
        count = len(self.jobs)
        #: All columns, one number for each row; a view, which a change of the table makes stale.
        self.columns: Floats = self._values[:, :count]
        #: The equivalence class of each row.
        self.class_id: Ints = self._class_ids[0, :count]

    def at(self, now_us: int) -> Floats:
        """Return age, time waited, time run and remaining time of each row at a moment, shape (4, rows)."""
        moving: Floats = self.columns[_MOVING : 2 * _MOVING] * now_us
        moving += self.columns[:_MOVING]
        return moving

    def queued(self) -> Ints:
        """Return the rows of the waiting jobs that are eligible."""
        # Among bools those that are not 0 are found in a third of the time.
        rows: Ints = self.columns[Column.QUEUED].astype(bool).nonzero()[0]
        return rows

    def copy(self) -> "Table":
        """Return a copy that later changes of this one do not touch."""
        other = Table()
        other.jobs, other.rows = self.jobs.copy(), self.rows.copy()
        other._values, other._class_ids = self.columns.copy(), self.class_id[np.newaxis].copy()
        other._set_views()
        return other
