"""History of a box as a trace for `yard simulate`: who submitted what when, and how long it held its GPUs."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

from torchyard.quantities import parse_size
from torchyard.spec.restarts import RestartPermission, restart_permission, stoppable
from torchyard.states import JOB_FINAL, JobState

if TYPE_CHECKING:
    from torchyard.api import Job
    from torchyard.api.sharing import Reservation
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
    #: 0 or 1: it could be stopped and go on later.
    stoppable: int
    #: It might start over, as in `RestartPermission`.
    restartable: int
    #: 0 or 1: its steps told how many there were to come.
    reports: int
    #: 0 or 1: stopped, it went on from a checkpoint.
    resumes: int = 1
    #: Bytes of each of its GPUs, if it shares them; 0: it had them to itself.
    gpu_share: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservationRow:
    """One reservation or maintenance; times in seconds since the epoch, several in a cell set apart by semicolons."""

    start_time: float
    end_time: float
    name: str
    #: Numbers of whole nodes, or else so many GPUs of any.
    nodes: str
    gpus: int | None
    users: str
    projects: str
    maintenance: int
    made_time: float
    cancel_time: float | None


def rows(client: "Client") -> Iterator[TraceRow]:
    """Jobs that have ended and had held GPUs, newest first."""
    forbidden = {project.name for project in client.projects() if not project.restarts}
    for job in client.jobs(state=[state.value for state in JOB_FINAL]):
        if job.gpus and job.attempt and (held_s := _held_s(client, job)) is not None:
            yield TraceRow(
                submit_time=job.created_at.timestamp(),
                duration=held_s,
                num_gpus=job.gpus,
                user=job.user,
                project=job.project,
                priority=job.priority.value,
                **flags(
                    job.spec,
                    saves=job.storage.saved,
                    restarts=job.project not in forbidden,
                    total_steps=None if job.progress is None else job.progress.total_steps,
                ),
                gpu_share=parse_size(job.spec.get("resources", {}).get("gpu_share") or 0),
            )


def flags(spec: Mapping[str, Any], *, saves: bool, restarts: bool, total_steps: int | None) -> dict[str, int]:
    """Return the flags of a job of this spec, as JSON, for its row.

    `saves`: it has had a checkpoint, deleted or not. `restarts`: its project lets jobs start over that do not ask
    for it themselves; whether a policy does is for each that is simulated to say.
    """
    permission = restart_permission(spec)
    return {
        "stoppable": int(stoppable(spec, saves=saves)),
        "restartable": int(
            permission if restarts or permission is RestartPermission.ASKED else RestartPermission.NEVER
        ),
        "reports": int(total_steps is not None),
        "resumes": int(saves or spec.get("restartable") is not True),
    }


def _held_s(client: "Client", job: "Job") -> float | None:
    """Seconds that its attempts held GPUs together, without trials that were thrown away; None if it never ran."""
    if job.attempt == 1 and job.state is not JobState.CANCELLED:
        spells = [(job.started_at, job.ended_at)]
    else:  # a job that was cancelled may have been put back before
        attempts = client.attempts(job.id)
        spells = [(attempt.started_at, attempt.ended_at) for attempt in attempts if not attempt.put_back]
    times = [seconds for start, end in spells if (seconds := _between(start, end)) is not None]
    return sum(times) if times else None


def _between(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else max((end - start).total_seconds(), 0.0)


def numbered(devices: Mapping[str, int], count: int) -> list[str]:
    """Return the names of the nodes that stand for as many alike, in the order of their numbers: the largest first.

    `devices` is the number of devices of each node.
    """
    return sorted(devices, key=lambda name: (-devices[name], name))[:count]


def reservation_rows(
    reservations: Iterable["Reservation"], nodes: Sequence[str], gpus: int
) -> Iterator[ReservationRow]:
    """Reservations as they are on these nodes, which have so many GPUs together; what is on other nodes is left out."""
    for each in reservations:
        numbers = [str(number) for number, name in enumerate(nodes) if name in each.nodes]
        if numbers or not each.nodes:
            yield ReservationRow(
                start_time=each.starts_at.timestamp(),
                end_time=each.ends_at.timestamp(),
                name=each.name,
                nodes=";".join(numbers),
                gpus=None if each.gpus is None else min(each.gpus, gpus),
                users=";".join(each.users),
                projects=";".join(each.projects),
                maintenance=int(each.maintenance),
                made_time=each.created_at.timestamp(),
                cancel_time=None if each.cancelled_at is None else each.cancelled_at.timestamp(),
            )


def write(rows: Iterable[TraceRow], file: TextIO) -> None:
    """The jobs as CSV, in the order in which they came."""
    _write(TraceRow, (astuple(row) for row in sorted(rows, key=lambda row: row.submit_time)), file)


def write_reservations(rows: Iterable[ReservationRow], file: TextIO) -> None:
    """The reservations as CSV, by their starts."""
    _write(ReservationRow, (astuple(row) for row in sorted(rows, key=lambda row: row.start_time)), file)


def _write(kind: type[TraceRow | ReservationRow], lines: Iterable[Sequence[object]], file: TextIO) -> None:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(field.name for field in fields(kind))
    out.writerows(lines)
