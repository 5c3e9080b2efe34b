"""Blobs that a node may read: those that attempts assigned to it start from."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, exists, false, or_, select

from service import lifecycle
from service.artifacts import carry
from service.db.engine import Database
from service.db.models import Attempt, CheckpointFile, Job, Member, Output, SnapshotFile
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.errors import not_found
from torchyard.ids import AttemptId


@dataclass(frozen=True, slots=True)
class _AssignedMember(Record):
    """A member of an attempt that is assigned to a node or runs there, and what it starts from."""

    node_rank: int
    restore_checkpoint: str | None
    carried_from: AttemptId | None
    spec: StoredSpec


def check(db: Database, node: str, sha256: str) -> None:
    """Raise ``not-found``, as for a blob that is not there, if no attempt of the node starts from it.

    It starts from its job's snapshot, from the checkpoint that it resumes, and from files that the attempts before it
    have left on its node rank: what `service.nodes.launches` tells.
    """
    with db.read() as tx:
        members = _members(tx, node)
        codes = {member.spec.code for member in members if member.spec.code}
        checkpoints = {member.restore_checkpoint for member in members if member.restore_checkpoint}
        found = (
            exists().where(SnapshotFile.sha256 == sha256, SnapshotFile.snapshot_id.in_(codes)),
            exists().where(CheckpointFile.sha256 == sha256, CheckpointFile.checkpoint_id.in_(checkpoints)),
            exists().where(Output.sha256 == sha256, or_(false(), *(_left(tx, member) for member in members))),
        )
        if not tx.scalar(select(or_(*found))):
            raise not_found("blob", sha256)


def _members(tx: Connection, node: str) -> list[_AssignedMember]:
    query = (
        select(Member.node_rank, Attempt.restore_checkpoint, Attempt.carried_from, Job.spec)
        .join(Attempt, Attempt.id == Member.attempt_id)
        .join(Job, Job.id == Attempt.job_id)
        .where(Member.node == node, Attempt.state.in_(lifecycle.LIVE))
    )
    return _AssignedMember.all(tx.execute(query))


def _left(tx: Connection, member: _AssignedMember) -> ColumnElement[bool]:
    """Condition that a file of `outputs` is one that a member begins with."""
    earlier = carry.chain(tx, member.carried_from)
    return and_(Output.attempt_id.in_(earlier), Output.node_rank == member.node_rank)
