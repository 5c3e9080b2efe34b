"""History of a box as a trace for `yard simulate`: who submitted what when, and how long it held its GPUs."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

from torchyard.spec.restarts import starts_over
from torchyard.states import JOB_FINAL

if TYPE_CHECKING:
    from torchyard.api import Job
    from torchyard.client.client import Client


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceRow:
    """One job; times in seconds, the submission since the epoch."""

    submit_time: float
    duration: float
    num_gpus: int
    user: str
    project: str
    priority: str
    #: 0 or 1: it could be stopped and go on later, it might start over, its steps told how many there were to come.
    stoppable: int
    restartable: int
    reports: int


def rows(client: "Client") -> Iterator[TraceRow]:
    """Jobs that have ended and had held GPUs, newest first."""
    for job in client.jobs(state=[state.value for state in JOB_FINAL]):
        if job.gpus and job.attempt and (held_s := _held_s(client, job)) is not None:
            yield TraceRow(
                submit_time=job.created_at.timestamp(),
                duration=held_s,
                num_gpus=job.gpus,
                user=job.user,
                project=job.project,
                priority=job.priority.value,
                stoppable=_stoppable(job),
                restartable=int(starts_over(job.spec)),
                reports=int(job.progress is not None and job.progress.total_steps is not None),
            )


def _stoppable(job: "Job") -> int:
    said = job.spec.get("preemptible")
    return int(job.storage.checkpoints > 0 if said is None else said)


def _held_s(client: "Client", job: "Job") -> float | None:
    """Seconds that its attempts held GPUs together; None if it never ran."""
    if job.attempt == 1:
        spells = [(job.started_at, job.ended_at)]
    else:
        spells = [(attempt.started_at, attempt.ended_at) for attempt in client.attempts(job.id)]
    times = [seconds for start, end in spells if (seconds := _between(start, end)) is not None]
    return sum(times) if times else None


def _between(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else max((end - start).total_seconds(), 0.0)


def write(rows: Iterable[TraceRow], file: TextIO) -> None:
    """The jobs as CSV, in the order in which they came."""
    out = csv.writer(file, lineterminator="\n")
    out.writerow(field.name for field in fields(TraceRow))
    out.writerows(astuple(row) for row in sorted(rows, key=lambda row: row.submit_time))
