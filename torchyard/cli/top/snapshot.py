"""One moment of the box, and the job that is chosen in it; pure values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from torchyard.api import IdleDevices, Job, Node, QueueEntry

#: A job that has its devices, or one that waits.
Row = Job | QueueEntry


@dataclass(frozen=True, kw_only=True)
class LogTail:
    """The end of a job's log."""

    job: str
    data: bytes


@dataclass(frozen=True, kw_only=True)
class BoxSnapshot:
    """The service's answers of one moment."""

    at: datetime
    nodes: Sequence[Node]
    #: Jobs that have devices, newest first.
    jobs: Sequence[Job]
    #: The first jobs that wait, in their order.
    queue: Sequence[QueueEntry]
    #: Why devices that no job has are idle.
    idle: Sequence[IdleDevices] = ()
    log: LogTail | None = None

    @property
    def rows(self) -> list[Row]:
        """Jobs that run, then jobs that wait; one that changed sides between two answers is here once."""
        running = {job.id for job in self.jobs}
        return [*self.jobs, *(entry for entry in self.queue if entry.job not in running)]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The chosen job and its place among the rows."""

    job: str | None = None
    place: int = 0

    def among(self, rows: Sequence[Row]) -> "Selection":
        """The same job; where it has gone, the one in its place."""
        ids = [job_id(row) for row in rows]
        place = ids.index(self.job) if self.job in ids else self.place
        return _at(ids, place)

    def moved(self, rows: Sequence[Row], by: int) -> "Selection":
        """The job that is so many rows further down."""
        return _at([job_id(row) for row in rows], self.among(rows).place + by)


def job_id(row: Row) -> str:
    """The id of a row's job."""
    return row.id if isinstance(row, Job) else row.job


def _at(ids: Sequence[str], place: int) -> Selection:
    if not ids:
        return Selection()
    place = max(0, min(place, len(ids) - 1))
    return Selection(job=ids[place], place=place)
