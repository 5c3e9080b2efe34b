"""Jobs as columns of numbers, so that ordering a hundred thousand of them is a handful of numpy calls."""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.scheduler.boxes import Shape
from service.scheduler.interning import Interner

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

_ROOM = 64


class Column(IntEnum):
    """What is known of each job; times are microseconds."""

    NUMBER = 0
    PRIORITY = 1
    #: Since when it could have started.
    BORN = 2
    #: Of a waiting job since when it would have waited, had it not run in between; of a running one how long it waited.
    WAITED = 3
    #: Running time before this attempt; of a running job less the moment at which it began.
    RAN = 4
    #: Running time still to come as its own progress (or an oracle) tells it; NaN: not known.
    LEFT = 5
    #: When LEFT was true, if it has shrunk since.
    AS_OF = 6
    #: Running time still to come as earlier jobs tell it; NaN: not known.
    GUESS = 7
    #: Running time that it will hardly pass: nine of ten such jobs, or its limit; infinite without either.
    BOUND = 8
    #: When a running job was given its devices.
    SINCE = 9
    #: Until when a running job is left alone; infinite if it cannot be stopped, or is being stopped.
    SPARED = 10


class Lane(NamedTuple):
    """Jobs alike in all that placement, quotas and shares look at."""

    shape: Shape
    nodes: int
    user: str
    project: str
    group: str | None
    preemptible: bool

    @property
    def gpus(self) -> int:
        """GPUs on all its nodes."""
        return self.nodes * self.shape.gpus


class Lanes:
    """The lanes in use, numbered, and their columns."""

    def __init__(self) -> None:
        self.lanes: Interner[Lane] = Interner()
        self.kinds: Interner[tuple[Shape, int]] = Interner()
        self.users: Interner[str] = Interner()
        self.projects: Interner[str] = Interner()
        #: Numbers of kind, user and project, GPUs of all nodes, whole GPUs of each node.
        self._columns: Ints = np.zeros((5, _ROOM), dtype=np.intp)
        #: GPUs that run now, and the sum over them of the moments at which they were given.
        self.of_users: Ints = np.zeros((2, _ROOM), dtype=np.intp)
        self.of_projects: Ints = np.zeros((2, _ROOM), dtype=np.intp)

    def hold(self, number: int, since_us: int) -> None:
        """A job of the lane runs since then."""
        self._count(number, since_us, 1)

    def release(self, number: int, since_us: int) -> None:
        """It does no more."""
        self._count(number, since_us, -1)

    def _count(self, number: int, since_us: int, sign: int) -> None:
        gpus = sign * self.lanes.key(number).gpus
        _, user, project, _, _ = self._columns[:, number].tolist()
        for sums, party in ((self.of_users, user), (self.of_projects, project)):
            sums[0, party] += gpus
            sums[1, party] += gpus * since_us

    def take(self, lane: Lane) -> int:
        """The lane's number."""
        fresh = lane not in self.lanes.ids
        number = self.lanes.take(lane)
        if fresh:
            self._columns = _grown(self._columns, len(self.lanes))
            kind = self.kinds.take((lane.shape, lane.nodes))
            user, project = self.users.take(lane.user), self.projects.take(lane.project)
            whole = 0 if lane.shape.gpu_share else lane.shape.gpus
            self._columns[:, number] = kind, user, project, lane.gpus, whole
            self.of_users = _grown(self.of_users, len(self.users))
            self.of_projects = _grown(self.of_projects, len(self.projects))
        return number

    def drop(self, number: int) -> None:
        """One job of it less."""
        lane = self.lanes.key(number)
        self.lanes.drop(number)
        if lane not in self.lanes.ids:
            kind, user, project, _, _ = self._columns[:, number].tolist()
            self.kinds.drop(kind)
            self.users.drop(user)
            self.projects.drop(project)

    def __len__(self) -> int:
        return len(self.lanes)

    @property
    def kind(self) -> Ints:
        return self._columns[0, : len(self.lanes)]

    @property
    def user(self) -> Ints:
        return self._columns[1, : len(self.lanes)]

    @property
    def project(self) -> Ints:
        return self._columns[2, : len(self.lanes)]

    @property
    def gpus(self) -> Ints:
        return self._columns[3, : len(self.lanes)]

    @property
    def whole(self) -> Ints:
        return self._columns[4, : len(self.lanes)]

    def copy(self) -> "Lanes":
        """Independent of this one."""
        other = Lanes()
        other.lanes, other.kinds = self.lanes.copy(), self.kinds.copy()
        other.users, other.projects = self.users.copy(), self.projects.copy()
        other._columns = self._columns.copy()
        other.of_users, other.of_projects = self.of_users.copy(), self.of_projects.copy()
        return other


class Table:
    """One row for each job, densely; the last row moves into the place of one that is removed."""

    def __init__(self) -> None:
        self.jobs: list[str] = []
        self.rows: dict[str, int] = {}
        self._values: Floats = np.zeros((len(Column), _ROOM))
        self._lane: Ints = np.zeros((1, _ROOM), dtype=np.intp)

    def __len__(self) -> int:
        return len(self.jobs)

    def add(self, job: str, lane: int, values: tuple[float, ...]) -> None:
        """A job that is not there yet, with its columns."""
        row = len(self.jobs)
        self._values = _grown(self._values, row + 1)
        self._lane = _grown(self._lane, row + 1)
        self.jobs.append(job)
        self.rows[job] = row
        self._values[:, row] = values
        self._lane[0, row] = lane

    def remove(self, job: str) -> int:
        """The lane of the job that was there."""
        row = self.rows.pop(job)
        lane = int(self._lane[0, row])
        last = self.jobs.pop()
        if last != job:
            self.jobs[row] = last
            self.rows[last] = row
            self._values[:, row] = self._values[:, len(self.jobs)]
            self._lane[0, row] = self._lane[0, len(self.jobs)]
        return lane

    def column(self, column: Column) -> Floats:
        """One number for each row; a view, which a change of the table makes stale."""
        return self._values[column, : len(self.jobs)]

    @property
    def lane(self) -> Ints:
        """The lane of each row."""
        return self._lane[0, : len(self.jobs)]

    def copy(self) -> "Table":
        """Independent of this one."""
        other = Table()
        other.jobs, other.rows = self.jobs.copy(), self.rows.copy()
        other._values, other._lane = self._values.copy(), self._lane.copy()
        return other


def _grown(columns: NDArray[Any], needed: int) -> NDArray[Any]:
    if needed <= columns.shape[1]:
        return columns
    wider = np.zeros((columns.shape[0], 2 * needed), dtype=columns.dtype)
    wider[:, : columns.shape[1]] = columns
    return wider
