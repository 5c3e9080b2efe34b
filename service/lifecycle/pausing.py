"""A sweep whose first trials all fail for the same cause is paused: the rest would fail alike."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select, update

from service.db.models import Group, Job
from torchyard.states import JOB_FINAL, JobState


def after_failure(tx: Connection, group_id: str) -> None:
    """Pause the group of a trial that has just failed, if so many as its `pause_after` have failed alike, and nothing
    else has ended yet. Trials that ended before somebody resumed it do not count again.
    """
    # Locked: of trials that fail at the same time, each must see the others.
    query = select(Group.__table__).where(Group.id == group_id, Group.paused.is_(None)).with_for_update(key_share=True)
    group = tx.execute(query).one_or_none()
    if group is None or not (first := int(group.sweep.get("pause_after", 0))):
        return
    reason = alike(_ended(tx, group, first), first)
    if reason is not None:
        tx.execute(update(Group).where(Group.id == group_id).values(paused=reason))


def _ended(tx: Connection, group: Row[Any], first: int) -> Sequence[Row[Any]]:
    query = (
        select(Job.state, Job.error)
        .where(Job.group_id == group.id, Job.state.in_(JOB_FINAL), Job.ended_us > (group.resumed_us or 0))
        .order_by(Job.ended_us, Job.id)
        .limit(first)
    )
    return tx.execute(query).all()


def alike(ended: Sequence[Any], first: int) -> str | None:
    """Say why a sweep is paused whose first trials ended so; None if it is not."""
    if len(ended) < first or any(row.state != JobState.FAILED for row in ended):
        return None
    errors = [row.error or {} for row in ended]
    causes = {error.get("cause") for error in errors}
    if len(causes) > 1:
        return None
    message = str(errors[0].get("message") or errors[0].get("cause") or "no reason is known").splitlines()[0]
    which = "the first trial failed" if first == 1 else f"the first {first} trials all failed alike"
    return f"{which}: {message[:300]}. Mend that and resume the sweep, or cancel it"
