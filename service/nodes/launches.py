"""Launches: everything that a node needs to start an attempt."""

from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Row, and_, select

from service import lifecycle
from service.artifacts import carry, checkpoints, snapshots
from service.attempts import tracked
from service.db.models import Allocation, Attempt, Device, Job, Member, User
from service.errors import ProblemError, StaleSpecError, not_found
from torchyard import wire
from torchyard.spec import JobSpec, error_messages


def launch(tx: Connection, attempt_id: str, node: str) -> wire.Launch:
    """Return the launch of the attempt's member on the node.

    Raises ``not-found`` for an unknown attempt, ``forbidden`` for another node's, ``not-acceptable-state`` if it is
    over; `StaleSpecError` when the spec, stored by an earlier version, is not valid any more.
    """
    row = _row(tx, attempt_id, node)
    if row.state not in lifecycle.LIVE:
        raise ProblemError("not-acceptable-state", f"Attempt {attempt_id} is {row.state}: forget it.")
    try:
        spec = JobSpec.model_validate(row.spec)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "spec"
        raise StaleSpecError(f"{place}: {error_messages.message(first, JobSpec)}") from error
    return wire.Launch(
        attempt=attempt_id,
        job=row.job_id,
        number=row.number,
        spec=spec,
        user=row.user,
        unix_user=row.unix_user,
        node_rank=row.node_rank,
        devices=_devices(tx, attempt_id, node),
        code=snapshots.files(tx, spec.code) if spec.code else None,
        restore=checkpoints.restore(tx, row.restore_checkpoint) if row.restore_checkpoint else None,
        carry=carry.files(tx, row.job_id, row.carried_from, row.node_rank, spec.code) if row.carried_from else None,
        tracker_runs=tracked.only_runs(tx, row.job_id, row.number),
    )


def _row(tx: Connection, attempt_id: str, node: str) -> Row[Any]:
    query = (
        select(
            Attempt.job_id,
            Attempt.number,
            Attempt.state,
            Attempt.restore_checkpoint,
            Attempt.carried_from,
            Job.spec,
            User.name.label("user"),
            User.unix_user,
            Member.node,
            Member.node_rank,
        )
        .join(Job, Job.id == Attempt.job_id)
        .join(User, User.id == Job.user_id)
        .join(Member, Member.attempt_id == Attempt.id)
        .where(Attempt.id == attempt_id)
    )
    rows = tx.execute(query).all()
    if not rows:
        raise not_found("attempt", attempt_id)
    for row in rows:
        if row.node == node:
            return row
    raise ProblemError("forbidden", f"Attempt {attempt_id} has no part on node {node}: use that node's own token.")


def _devices(tx: Connection, attempt_id: str, node: str) -> list[wire.Device]:
    query = (
        select(Device.uuid, Device.index, Device.kind, Device.name, Device.memory, Device.unusable)
        .join(Allocation, and_(Allocation.node == Device.node, Allocation.uuid == Device.uuid))
        .where(Allocation.attempt_id == attempt_id, Allocation.node == node)
        .order_by(Device.index)
    )
    return [wire.Device(**row._mapping) for row in tx.execute(query)]
