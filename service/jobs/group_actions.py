"""Actions of people on all trials of a sweep at once. States change in `service.lifecycle` alone."""

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, select, update

from service import lifecycle
from service.db.engine import Database
from service.db.models import Group, Job
from service.db.records.jobs import ShownGroup
from service.db.unit_of_work import unit_of
from service.errors import ProblemError
from service.identity import audit
from service.identity.callers import Caller
from service.identity.roles import may_change
from service.infra.times import Clock
from service.jobs import groups
from service.jobs.change import refusals
from torchyard.ids import JobId
from torchyard.states import JOB_FINAL, JobState, StopReason
from torchyard.translatable import TranslatableText

Action = Callable[[Connection, ShownGroup, Caller, int], Sequence[JobId]]


def act(db: Database, clock: Clock, caller: Caller, ref: str, action: Action) -> ShownGroup:
    """Do one of the actions below to a group; return the group as it is then."""
    with refusals(), db.write() as tx:
        group = groups.find(tx, ref, caller)
        may_change(caller, group)
        action(tx, group, caller, clock())
        if action is not resume:  # which records what it has resumed from
            audit.record_request(tx, caller, group.id, clock())
        return groups.find(tx, group.id, caller)


def cancel(tx: Connection, group: ShownGroup, caller: Caller, now: int) -> Sequence[JobId]:
    """Stop all trials for good; those that wait are over at once, those that are over stay as they are."""
    alive = select(Job.id, Job.state).where(Job.group_id == group.id, Job.state.not_in(JOB_FINAL)).order_by(Job.id)
    # All at once, in the order in which everybody locks jobs: first those that wait would be another one.
    rows = tx.execute(alive.with_for_update(key_share=True)).all()
    queued = [row.id for row in rows if row.state == JobState.QUEUED]
    waiting = lifecycle.cancel_waiting(tx, queued, caller.name, now)
    running = [row.id for row in rows if row.state != JobState.QUEUED]
    for job in running:
        lifecycle.request_stop(tx, job, StopReason.CANCEL, caller.name, now)
    return [*waiting, *running]


def hold(tx: Connection, group: ShownGroup, caller: Caller, now: int) -> Sequence[JobId]:
    """Keep the trials that wait from starting."""
    return _set_held(tx, group, caller, now, held=True)


def release(tx: Connection, group: ShownGroup, caller: Caller, now: int) -> Sequence[JobId]:
    """Let the trials that are held start."""
    return _set_held(tx, group, caller, now, held=False)


def _set_held(tx: Connection, group: ShownGroup, caller: Caller, now: int, *, held: bool) -> Sequence[JobId]:
    _require_waiting(tx, group)
    jobs = lifecycle.lock_waiting(tx, Job.group_id == group.id, Job.held.is_not(held))
    word = "held" if held else "released"
    note = lifecycle.Note(kind=word, message=f"{word} with its whole sweep", actor=caller.name, data={"sweep": True})
    renewed = {} if held else {"eligible_us": now}
    return lifecycle.change_waiting(tx, jobs, note, now, held=held, **renewed)


def _require_waiting(tx: Connection, group: ShownGroup) -> None:
    waits = select(Job.id).where(Job.group_id == group.id, Job.state == JobState.QUEUED).limit(1)
    if tx.scalar(waits) is None:
        raise ProblemError(
            "not-acceptable-state",
            TranslatableText(
                "no-trial-waits",
                "No trial of sweep {number} waits: only those that do are held or released.",
                number=group.number,
            ),
        )


def resume(tx: Connection, group: ShownGroup, caller: Caller, now: int) -> Sequence[JobId]:
    """Let the trials of a paused sweep start again; what has failed before does not pause it a second time."""
    if group.paused is None:
        return ()
    tx.execute(update(Group).where(Group.id == group.id).values(paused=None, resumed_us=now))
    unit_of(tx).tell("jobs")
    unit_of(tx).wake_scheduler()
    audit.record(tx, caller, "sweep.resume", group.id, now, paused=group.paused)
    return ()
