"""A sweep whose first trials all fail for the same cause is paused: the rest would fail alike."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from service.db.models import Group, Job
from service.db.records.jobs import GroupRecord
from service.db.records.record import Record
from torchyard.api import JobError
from torchyard.states import JOB_FINAL, JobState


@dataclass(frozen=True, slots=True)
class EndedTrial(Record):
    """A trial that is over, with its error if it failed."""

    state: JobState
    error: JobError | None


def after_failure(tx: Connection, group_id: str) -> None:
    """Pause the group of a trial that has just failed, if its first `pause_after` trials have failed alike.

    Nothing else may have ended yet. Trials that ended before somebody resumed it do not count again.
    """
    # Locked: of trials that fail at the same time, each must see the others.
    query = select(Group.__table__).where(Group.id == group_id, Group.paused.is_(None)).with_for_update(key_share=True)
    group = GroupRecord.first(tx.execute(query))
    if group is None or not (first := group.sweep.pause_after):
        return
    reason = alike(_ended(tx, group, first), first)
    if reason is not None:
        tx.execute(update(Group).where(Group.id == group_id).values(paused=reason))


def _ended(tx: Connection, group: GroupRecord, first: int) -> Sequence[EndedTrial]:
    query = (
        select(Job.state, Job.error)
        .where(Job.group_id == group.id, Job.state.in_(JOB_FINAL), Job.ended_us > (group.resumed_us or 0))
        .order_by(Job.ended_us, Job.id)
        .limit(first)
    )
    return EndedTrial.all(tx.execute(query))


def alike(ended: Sequence[EndedTrial], first: int) -> str | None:
    """Say why a sweep is paused whose first trials ended so; None if it is not."""
    if len(ended) < first or any(trial.state is not JobState.FAILED for trial in ended):
        return None
    if len({trial.error and trial.error.cause for trial in ended}) > 1:
        return None
    error = ended[0].error
    message = ((error and (error.message or error.cause)) or "no reason is known").splitlines()[0]
    which = "the first trial failed" if first == 1 else f"the first {first} trials all failed alike"
    return f"{which}: {message[:300]}. Mend that and resume the sweep, or cancel it"
