"""The queue as people see it: places, reasons, and why a job is where it is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from service.db.models import Attempt, Job, Member, User
from service.jobs import fit
from service.lifecycle import Unknown
from service.scheduler import explain, forecast, former_view
from service.scheduler.boxes import Box, Waiting
from service.scheduler.load import Loader
from service.times import moment
from torchyard.api import QueueEntry, Reason, Why
from torchyard.spec import Priority
from torchyard.states import JobState, StopReason

_PRIORITIES = tuple(Priority)
_STOPPED = {
    StopReason.CANCEL: "it was cancelled",
    StopReason.TIMEOUT: "it ran into its time limit",
    StopReason.PREEMPT: "it was preempted",
    StopReason.DRAIN: "its node is draining",
}


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Queue and boxes as they are now."""

    queue: Sequence[Waiting]
    boxes: Sequence[Box]
    now: int


def moment_of(tx: Connection, loader: Loader, now: int) -> Moment:
    """Reads queue and boxes."""
    state = loader.snapshot(tx, now)
    return Moment(queue=former_view.queue(state), boxes=former_view.boxes(state), now=now)


def entries(tx: Connection, seen: Moment, start: int, limit: int) -> list[QueueEntry]:
    """The queue from place `start` (from 0), each job with the strongest reason why it waits."""
    some = seen.queue[start : start + limit]
    rows = _titles_of(tx, [waiting.job for waiting in some])
    scene = _scene(tx, seen)
    return [
        QueueEntry(
            position=number,
            job=waiting.job,
            number=waiting.number,
            name=rows[waiting.job].name,
            user=rows[waiting.job].user,
            priority=_PRIORITIES[waiting.priority],
            gpus=waiting.nodes * waiting.shape.gpus,
            held=waiting.held,
            reason=explain.reasons(waiting, scene)[0].message,
        )
        for number, waiting in enumerate(some, start + 1)
    ]


def why(tx: Connection, job: Row[Any], loader: Loader, now: int) -> Why:
    """Why the job is where it is; `job` is its row."""
    if job.state == JobState.QUEUED:
        return _why_waiting(tx, job, moment_of(tx, loader, now))
    code, message = _why_not_waiting(tx, job)
    return Why(
        state=JobState(job.state),
        summary=f"Job {job.number} {message}.",
        reasons=[Reason(code=code, message=message)],
        position=None,
        expected_start_at=None,
    )


def _why_waiting(tx: Connection, job: Row[Any], seen: Moment) -> Why:
    waiting = next((w for w in seen.queue if w.job == job.id), None)
    if waiting is None:
        raise Unknown(f"job {job.number} left the queue just now: ask again")
    scene = _scene(tx, seen)
    found = explain.reasons(waiting, scene) + _advice(tx, waiting, seen)
    place = scene.place(job.id)
    return Why(
        state=JobState.QUEUED,
        summary=f"Job {job.number} waits at place {place}: {found[0].message}.",
        reasons=found,
        position=place,
        expected_start_at=_expected(job.id, seen),
    )


def _advice(tx: Connection, waiting: Waiting, seen: Moment) -> list[Reason]:
    found = fit.advice(tx, waiting.shape, seen.boxes, waiting.nodes)
    return [Reason(code="advice", message=message) for message in found]


def _expected(job_id: str, seen: Moment) -> datetime | None:
    expected = forecast.latest_start(job_id, seen.queue, seen.boxes, seen.now)
    return None if expected is None else moment(expected)


def _why_not_waiting(tx: Connection, job: Row[Any]) -> tuple[str, str]:
    """A slug and what follows "Job 7 …"."""
    state = JobState(job.state)
    match state:
        case JobState.SUCCEEDED:
            return state.value, "succeeded"
        case JobState.FAILED:
            return _failed(job)
        case JobState.CANCELLED:
            return state.value, f"was cancelled{_by(job)}"
        case JobState.STOPPING:
            return state.value, f"is stopping because {_stopped(job)}"
    node = _node_of(tx, job)
    started = f" since {moment(job.started_us):%Y-%m-%d %H:%M:%S} UTC" if job.started_us else ""
    words = {
        JobState.ASSIGNED: f"has its GPUs; its launch is on the way to node {node}",
        JobState.STARTING: f"is being prepared on node {node}: code and environment",
        JobState.RUNNING: f"has been running on node {node}{started}",
        JobState.UNREACHABLE: f"may still be running on node {node}, which is silent: it is not started again before "
        "the node is back, or an administrator says that it is gone",
    }
    return state.value, words[state]


def _failed(job: Row[Any]) -> tuple[str, str]:
    error = job.error or {}
    return error.get("cause", "failed"), f"failed: {error.get('message', 'no reason is known')}"


def _stopped(job: Row[Any]) -> str:
    if job.stop is None:
        return "its part on one of its nodes has failed"
    return f"{_STOPPED[StopReason(job.stop)]}{_by(job)}"


def _by(job: Row[Any]) -> str:
    return f" by {job.stop_actor}" if job.stop_actor else ""


def _node_of(tx: Connection, job: Row[Any]) -> str:
    query = (
        select(Member.node)
        .join(Attempt, Attempt.id == Member.attempt_id)
        .where(Attempt.job_id == job.id, Attempt.number == job.attempt)
        .order_by(Member.node_rank)
    )
    return ", ".join(tx.scalars(query))


def _scene(tx: Connection, seen: Moment) -> explain.Scene:
    running = [running.job for box in seen.boxes for running in box.running]
    eligible = [waiting.job for waiting in seen.queue if not waiting.held and not waiting.saving]
    rows = _titles_of(tx, running + eligible[: explain.NAMED])  # all that a reason can name
    titles = {job: explain.Title(number=row.number, user=row.user) for job, row in rows.items()}
    return explain.Scene(seen.queue, seen.boxes, titles, seen.now)


def _titles_of(tx: Connection, jobs: Iterable[str]) -> dict[str, Row[str, int, str, str]]:
    query = (
        select(Job.id, Job.number, Job.name, User.name.label("user"))
        .join(User, User.id == Job.user_id)
        .where(Job.id.in_(list(jobs)))
    )
    return {row.id: row for row in tx.execute(query)}
