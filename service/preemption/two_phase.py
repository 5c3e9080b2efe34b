"""Preemption that loses nothing, in two steps: a checkpoint first, and the stop once that is verified.

Between the two the job runs on. All that is agreed lies in the attempt's row, and each round begins from what is
stored: a service that was killed goes on, and what is told twice is done once. Victims of the same preemptor are
stopped together: none is stopped before all can be, and if one can't, all keep their devices. Those in the way of a
reservation are stopped each by itself: it takes what it gets.
"""

from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from service import lifecycle
from service.accounting.policy_settings import current_policy
from service.db.engine import Database
from service.db.models import Attempt, Checkpoint, Group, Job, Reservation, User
from service.db.records.attempts import PendingPreemption
from service.db.records.jobs import JobRecord
from service.db.records.record import Record
from service.infra.times import Clock
from service.preemption.handshake import HandshakeVerdict, NoUse, PreemptionVictim, job_of, judge, named
from service.scheduler.model.decisions import Cause
from torchyard.ids import AttemptId, JobId
from torchyard.spec import Priority
from torchyard.states import JobState, StopReason

_PRIORITIES = tuple(Priority)
_CAUSES = {
    Cause.CLASS: "which is of a higher class",
    Cause.SHARE: "whose owner has had less than their share",
    Cause.TIME_SLICE: "whose turn it is on a box that is over-full",
    Cause.LONGEST_WAIT: "which has waited for too long",
    Cause.RESERVATION: "for which its devices are reserved",
}


@dataclass(frozen=True, slots=True)
class _PendingVictim(Record):
    """A live attempt that is to be preempted, with the state of its job and its newest verified step."""

    id: AttemptId
    job_id: JobId
    yielding: PendingPreemption
    state: JobState
    stop: StopReason | None
    saved_step: int | None


@dataclass(frozen=True, slots=True)
class _WaitingPreemptor(Record):
    """A job for which others are preempted; `name` is its user's, `paused` says why its sweep is."""

    number: int
    state: JobState
    held: bool
    blocked: bool
    priority: int
    name: str
    paused: str | None


def begin(db: Database, clock: Clock, jobs: Mapping[JobId, Cause], preemptor: str) -> list[JobId]:
    """Begin to preempt running jobs for a job or a reservation, all or none, each with its cause; return their ids.

    Raises `lifecycle.Conflict` if one does not run any more, one is being preempted already, or the preemptor no longer
    waits.
    """
    now = clock()
    chosen = sorted(jobs)
    with db.write() as tx:
        locked = sorted({*chosen, *job_of(preemptor)})  # the order of locking
        rows = {job: lifecycle.lock_job(tx, job) for job in locked}
        found = _named(tx, preemptor, now)
        if found is None:
            raise lifecycle.Conflict(f"{preemptor} no longer waits")
        words, params = found
        deadline_us = now + current_policy(tx).checkpoint_timeout * 1_000_000
        for job in chosen:
            asked = PendingPreemption(
                preemptor=preemptor, words=words, params=params, asked_us=now, deadline_us=deadline_us
            )
            _ask(tx, rows[job], asked, jobs[job], now)
        for job in job_of(preemptor):
            numbers = named(rows[each].number for each in chosen)
            verb = "is to be preempted for it" if len(chosen) == 1 else "are to be preempted for it"
            data = {"jobs": chosen, "numbers": [rows[each].number for each in chosen]}
            lifecycle.insert_event(tx, job, "awaiting", f"{numbers} {verb}", data=data, now=now)
    return chosen


def _ask(tx: Connection, job: JobRecord, pending: PendingPreemption, cause: Cause, now: int) -> None:
    written = select(func.max(Checkpoint.step)).join(Attempt, Attempt.id == Checkpoint.attempt_id)
    after = tx.scalar(written.where(Attempt.job_id == job.id, Attempt.number == job.attempt))
    trial = job.spec.preemptible is None and job.spec.restart_permission
    checkpoint = after is not None or not (job.spec.restartable or trial)
    over = not checkpoint and (cause is Cause.TIME_SLICE or not job.spec.restartable)
    how = "asked to write a checkpoint first" if checkpoint else "can be stopped without, since it may start over"
    note = lifecycle.Note(
        kind="preempting",
        message=f"is to be preempted for {pending.words}, {_CAUSES[cause]}: {how}",
        data={"for": pending.preemptor, "cause": cause, "checkpoint": checkpoint, **pending.told},
    )
    known = pending.model_copy(update={"after": -1 if after is None else after, "over": over})
    lifecycle.request_preemption(tx, job.id, known, note, now, checkpoint=checkpoint)


def put_back(db: Database, clock: Clock, job: JobId, blocked: str) -> None:
    """Stop a job whose trial is over, since its devices are kept for a blocked one.

    Raises `lifecycle.Conflict` if it does not run any more, or the other no longer waits.
    """
    now = clock()
    with db.write() as tx:
        for each in sorted({job, *job_of(blocked)}):  # the order of locking
            lifecycle.lock_job(tx, each)
        found = _named(tx, blocked, now)
        if found is None:
            raise lifecycle.Conflict(f"{blocked} no longer waits")
        words, params = found
        told = {"preemptor": f"{words}, for which its devices are kept", "preemptor_params": {**params, "kept": True}}
        lifecycle.put_back(tx, job, told, now)


def advance(db: Database, clock: Clock, ineligible: Container[str] = ()) -> None:
    """Take the next step of all preemptions that are under way; call it as often as you like.

    `ineligible` are preemptors that would not start although others were preempted for them.
    """
    with db.read() as tx:
        verdicts = _verdicts(tx, clock(), ineligible)
    for group in [group for group, verdict in verdicts.items() if verdict.stop or verdict.keep]:
        _carry_out(db, clock, group, ineligible)


def _carry_out(db: Database, clock: Clock, group: str, ineligible: Container[str]) -> None:
    now = clock()
    try:
        with db.write() as tx:
            jobs = {each.job for each in _groups(tx).get(group, ())}
            rows = {job: lifecycle.lock_job(tx, job) for job in sorted({*jobs, *job_of(group)})}  # the order of locking
            verdict = _verdicts(tx, now, ineligible).get(group, HandshakeVerdict())
            for each in verdict.stop:
                _stop(tx, each, now)
            for each in verdict.keep:
                _keep(tx, each, verdict, now)
            for job in job_of(group) if verdict.keep else ():
                _tell(tx, rows, job, verdict, now)
    except lifecycle.Conflict:
        return  # a job ended meanwhile: the next round sees what is left


def _stop(tx: Connection, each: PreemptionVictim, now: int) -> None:
    if each.pending.over:
        lifecycle.put_back(tx, each.job, each.pending.told, now)
        return
    words = f"preempted for {each.pending.words}: {each.where}"
    told = {**each.pending.told, "step": None if each.pending.serial is None else each.saved_step}
    lifecycle.request_stop(tx, each.job, StopReason.PREEMPT, None, now, words, told)


def _keep(tx: Connection, each: PreemptionVictim, verdict: HandshakeVerdict, now: int) -> None:
    late = each.job in verdict.late
    note = lifecycle.Note(
        kind="preemption-abandoned",
        message=verdict.told_to(each),
        data={"for": each.pending.preemptor, **verdict.data_for(each)},
    )
    lifecycle.abandon_preemption(tx, each.attempt, note, now + 1_000_000 * _spared_s(tx) if late else None, now)


def _spared_s(tx: Connection) -> int:
    """Return for how many seconds a job is left alone whose checkpoint did not come in time."""
    return 2 * current_policy(tx).checkpoint_timeout


def _tell(
    tx: Connection, rows: Mapping[JobId, JobRecord], preemptor: JobId, verdict: HandshakeVerdict, now: int
) -> None:
    """Tell the preemptor that nothing is freed for it, unless it is over, or runs elsewhere."""
    if rows[preemptor].state == JobState.QUEUED:
        kept = [each.job for each in verdict.keep]
        numbers, spared_s = {job: row.number for job, row in rows.items()}, _spared_s(tx)
        told, data = verdict.told(numbers, spared_s), {"jobs": kept, **verdict.data(numbers, spared_s)}
        lifecycle.insert_event(tx, preemptor, "awaiting-abandoned", told, data=data, now=now)


def _verdicts(tx: Connection, now: int, ineligible: Container[str]) -> dict[str, HandshakeVerdict]:
    return {
        name: judge(group, now, why=_why_not(tx, group[0].pending.preemptor, now, ineligible))
        for name, group in _groups(tx).items()
    }


def _why_not(tx: Connection, preemptor: str, now: int, ineligible: Container[str]) -> NoUse | None:
    if _named(tx, preemptor, now) is None:
        return NoUse.GONE
    return NoUse.MOVED if preemptor in ineligible else None


def _groups(tx: Connection) -> dict[str, list[PreemptionVictim]]:
    groups: defaultdict[str, list[PreemptionVictim]] = defaultdict(list)
    for each in _victims(tx):
        groups[each.group].append(each)
    return groups


def _victims(tx: Connection) -> list[PreemptionVictim]:
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
        PreemptionVictim(
            job=row.job_id,
            attempt=row.id,
            pending=row.yielding,
            runs=row.state is JobState.RUNNING,
            stop=row.stop,
            saved_step=row.saved_step,
        )
        for row in _PendingVictim.each(tx.execute(query))
    ]


def _named(tx: Connection, preemptor: str, now: int) -> tuple[str, dict[str, Any]] | None:
    """Return what the preemptor is called, and what these words are made of; None if it does not wait any more."""
    query = (
        select(Job.number, Job.state, Job.held, Job.blocked, Job.priority, User.name, Group.paused)
        .join(User, User.id == Job.user_id)
        .outerjoin(Group, Group.id == Job.group_id)
        .where(Job.id == preemptor)
    )
    job = _WaitingPreemptor.first(tx.execute(query))
    if job is not None:
        if job.state is not JobState.QUEUED or job.held or job.blocked or job.paused is not None:
            return None
        priority = _PRIORITIES[job.priority]
        params = {"number": job.number, "user": job.name, "priority": priority.value}
        return f"job {job.number} ({job.name}), {priority}", params
    reserved = select(Reservation.name, Reservation.maintenance).where(
        Reservation.id == preemptor, Reservation.cancelled_us.is_(None), Reservation.ends_us > now
    )
    row = tx.execute(reserved).one_or_none()
    if row is None:
        return None
    params = {"name": row.name, "maintenance": row.maintenance}
    return f"{'maintenance' if row.maintenance else 'reservation'} {row.name}", params
