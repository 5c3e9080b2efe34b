"""Preemption that loses nothing, in two steps: a checkpoint first, and the stop once that is verified.

Between the two the job runs on. All that is agreed lies in the attempt's row, and each round begins from what is
stored: a service that was killed goes on, and what is told twice is done once. Jobs that give way to the same newcomer
do so together: none is stopped before all can be, and if one can't, all keep their devices. Those in the way of a
reservation give way each by itself: it takes what it gets.
"""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, Row, func, select

from service import lifecycle
from service.context import Context
from service.db.models import Attempt, Checkpoint, Group, Job, Member, Reservation, User
from service.policy_settings import current_policy
from service.scheduler.decisions import Cause
from torchyard.spec import Priority
from torchyard.states import JobState, StopReason

_PRIORITIES = tuple(Priority)
_CAUSES = {
    Cause.CLASS: "which is of a higher class",
    Cause.SHARE: "whose owner has had less than their share",
    Cause.TIME_SLICE: "whose turn it is on a box that is over-full",
    Cause.LONGEST_WAIT: "which has waited for too long",
    Cause.RESERVATION: "which begins soon",
}


class Yielding(BaseModel):
    """A preemption that is under way, as it is stored in `attempts.yielding`."""

    model_config = ConfigDict(frozen=True, validate_by_name=True, validate_by_alias=True)

    newcomer: str = Field(validation_alias="for", serialization_alias="for")
    """Id of the job or the reservation."""
    words: str
    """The newcomer, as events name it."""
    asked_us: int
    deadline_us: int
    serial: int | None = None
    """Of the order for a checkpoint; None: it can be stopped without one."""
    after: int = -1
    """Newest step whose checkpoint was known when it was asked: only a later one counts."""

    def group(self, attempt: str) -> str:
        """What the jobs that must give way together have in common."""
        return next(iter(_job(self.newcomer)), attempt)


@dataclass(frozen=True, kw_only=True)
class Yielder:
    """A running job that gives way."""

    job: str
    attempt: str
    yielding: Yielding
    runs: bool
    stops: bool
    saved_step: int | None = None
    """Of its newest verified checkpoint."""

    @property
    def ready(self) -> bool:
        """Whether it can be stopped without loss."""
        return self.runs and (
            self.yielding.serial is None or (self.saved_step is not None and self.saved_step > self.yielding.after)
        )

    @property
    def where(self) -> str:
        """What it goes on from, in words."""
        if self.yielding.serial is None:
            return "it is restartable and has no checkpoint"
        return f"its checkpoint of step {self.saved_step} is verified"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is done with the jobs that give way to one newcomer."""

    stop: tuple[Yielder, ...] = ()
    keep: tuple[Yielder, ...] = ()
    late: frozenset[str] = frozenset()
    """Jobs whose checkpoint did not come in time."""
    why: str = ""
    """What keeps the newcomer from starting in their places, if something does."""

    def why_kept(self, each: Yielder) -> str:
        """Why a job keeps its devices, in words."""
        words = each.yielding.words
        if self.why:
            return f"{words}, {self.why}"
        if each.job not in self.late:
            return f"another job cannot give way to {words}"
        allowed = (each.yielding.deadline_us - each.yielding.asked_us) // 1_000_000
        return f"no checkpoint was verified within {allowed} s: {words}, does not get them, nor does anybody soon"


def judge(group: Sequence[Yielder], now: int, *, why: str = "") -> Verdict:
    """The next step for jobs that give way to one newcomer; `why` says what keeps it from starting in their places."""
    left = tuple(each for each in group if not each.stops)
    if why:
        return Verdict(keep=left, why=why)
    late = frozenset(each.job for each in left if not each.ready and now >= each.yielding.deadline_us)
    if late:
        return Verdict(keep=left, late=late)
    return Verdict(stop=left) if all(each.ready for each in left) else Verdict()


def begin(ctx: Context, jobs: Mapping[str, Cause], newcomer: str) -> list[str]:
    """Asks running jobs to give way to a job or a reservation, all or none, each with its cause; returns their ids.

    Raises `lifecycle.Conflict` if one does not run any more or yields already, or if the newcomer no longer waits.
    """
    now = ctx.now_us()
    chosen = sorted(jobs)
    with ctx.db.write() as tx:
        rows = {job: lifecycle.lock_job(tx, job) for job in sorted({*chosen, *_job(newcomer)})}  # the order of locking
        words = _words(tx, newcomer, now)
        if words is None:
            raise lifecycle.Conflict(f"{newcomer} no longer waits")
        deadline_us = now + current_policy(tx).checkpoint_timeout * 1_000_000
        for job in chosen:
            asked = Yielding(newcomer=newcomer, words=words, asked_us=now, deadline_us=deadline_us)
            _ask(tx, rows[job], asked, jobs[job], now)
        for job in _job(newcomer):
            numbers = " and ".join(f"job {rows[each].number}" for each in chosen)
            verb = "is to give way to it" if len(chosen) == 1 else "are to give way to it"
            lifecycle.insert_event(tx, job, "awaiting", f"{numbers} {verb}", data={"jobs": chosen}, now=now)
    _announce(ctx, [*chosen, *_job(newcomer)])
    return chosen


def _job(newcomer: str) -> tuple[str, ...]:
    """The newcomer, if it is a job."""
    return (newcomer,) if newcomer.startswith("job-") else ()


def _ask(tx: Connection, job: Row[Any], yielding: Yielding, cause: Cause, now: int) -> None:
    written = select(func.max(Checkpoint.step)).join(Attempt, Attempt.id == Checkpoint.attempt_id)
    after = tx.scalar(written.where(Attempt.job_id == job.id, Attempt.number == job.attempt))
    checkpoint = after is not None or not job.spec.get("restartable")
    how = "asked to write a checkpoint first" if checkpoint else "can be stopped without, since it is restartable"
    note = lifecycle.Note(
        kind="preempting",
        message=f"is to give way to {yielding.words}, {_CAUSES[cause]}: {how}",
        data={"for": yielding.newcomer, "cause": cause},
    )
    known = yielding.model_copy(update={"after": -1 if after is None else after})
    lifecycle.ask_to_yield(tx, job.id, known.model_dump(by_alias=True), note, now, checkpoint=checkpoint)


def advance(ctx: Context, hindered: Container[str] = ()) -> None:
    """One round over all preemptions that are under way; call it as often as you like. `hindered` are newcomers that
    would not start although others gave way to them.
    """
    with ctx.db.read() as tx:
        verdicts = _verdicts(tx, ctx.now_us(), hindered)
    for group in [group for group, verdict in verdicts.items() if verdict.stop or verdict.keep]:
        _settle(ctx, group, hindered)


def _settle(ctx: Context, group: str, hindered: Container[str]) -> None:
    now = ctx.now_us()
    try:
        with ctx.db.write() as tx:
            for each in _groups(tx).get(group, ()):  # in the order of locking
                lifecycle.lock_job(tx, each.job)
            verdict = _verdicts(tx, now, hindered).get(group, Verdict())
            for each in verdict.stop:
                _stop(tx, each, now)
            for each in verdict.keep:
                _keep(tx, each, verdict, now)
    except lifecycle.Conflict:
        return  # a job ended meanwhile: the next round sees what is left
    _announce(ctx, [each.job for each in (*verdict.stop, *verdict.keep)])


def _stop(tx: Connection, each: Yielder, now: int) -> None:
    words = f"preempted for {each.yielding.words}: {each.where}"
    lifecycle.request_stop(tx, each.job, StopReason.PREEMPT, None, now, words)


def _keep(tx: Connection, each: Yielder, verdict: Verdict, now: int) -> None:
    late = each.job in verdict.late
    spared_us = 2 * current_policy(tx).checkpoint_timeout * 1_000_000
    note = lifecycle.Note(
        kind="preemption-abandoned",
        message=f"keeps its devices: {verdict.why_kept(each)}",
        data={"for": each.yielding.newcomer},
    )
    lifecycle.keep_devices(tx, each.attempt, note, now + spared_us if late else None, now)


def _verdicts(tx: Connection, now: int, hindered: Container[str]) -> dict[str, Verdict]:
    return {
        name: judge(group, now, why=_why_not(tx, group[0].yielding.newcomer, now, hindered))
        for name, group in _groups(tx).items()
    }


def _why_not(tx: Connection, newcomer: str, now: int, hindered: Container[str]) -> str:
    if _words(tx, newcomer, now) is None:
        return "no longer waits"
    return "would not start in its place any more" if newcomer in hindered else ""


def _groups(tx: Connection) -> dict[str, list[Yielder]]:
    groups: defaultdict[str, list[Yielder]] = defaultdict(list)
    for each in _yielders(tx):
        groups[each.yielding.group(each.attempt)].append(each)
    return groups


def _yielders(tx: Connection) -> list[Yielder]:
    saved = (
        select(func.max(Checkpoint.step))
        .where(Checkpoint.attempt_id == Attempt.id, Checkpoint.state == "stored")
        .scalar_subquery()
    )
    query = (
        select(Attempt.id, Attempt.job_id, Attempt.yielding, Job.state, Job.stop, saved.label("saved_step"))
        .join(Job, Job.id == Attempt.job_id)
        .where(Attempt.state.in_(lifecycle.LIVE), Attempt.yielding.is_not(None))
        .order_by(Attempt.job_id)
    )
    return [
        Yielder(
            job=row.job_id,
            attempt=row.id,
            yielding=Yielding.model_validate(row.yielding),
            runs=row.state == JobState.RUNNING,
            stops=row.stop is not None,
            saved_step=row.saved_step,
        )
        for row in tx.execute(query)
    ]


def _words(tx: Connection, newcomer: str, now: int) -> str | None:
    """What the newcomer is called; None if it does not wait any more."""
    query = (
        select(Job.number, Job.state, Job.held, Job.blocked, Job.priority, User.name, Group.paused)
        .join(User, User.id == Job.user_id)
        .outerjoin(Group, Group.id == Job.group_id)
        .where(Job.id == newcomer)
    )
    job = tx.execute(query).one_or_none()
    if job is not None:
        waits = job.state == JobState.QUEUED and not job.held and not job.blocked and job.paused is None
        return f"job {job.number} ({job.name}), {_PRIORITIES[job.priority]}" if waits else None
    reserved = select(Reservation.name, Reservation.maintenance).where(
        Reservation.id == newcomer, Reservation.cancelled_us.is_(None), Reservation.ends_us > now
    )
    row = tx.execute(reserved).one_or_none()
    return None if row is None else f"{'maintenance' if row.maintenance else 'reservation'} {row.name}"


def _announce(ctx: Context, jobs: Sequence[str]) -> None:
    with ctx.db.read() as tx:
        query = select(Member.node).join(Attempt, Attempt.id == Member.attempt_id)
        live = query.where(Attempt.job_id.in_(jobs), Attempt.state.in_(lifecycle.LIVE)).distinct()
        nodes: Sequence[Any] = tx.scalars(live).all()
    for node in nodes:
        ctx.dispatcher.nudge(node)
    ctx.hub.notify(*(f"job:{job}" for job in jobs), "jobs", *(f"node:{node}" for node in nodes))
