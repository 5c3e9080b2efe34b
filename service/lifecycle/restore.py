"""Choice of the checkpoint that the next attempt of a job starts from."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, exists, false, or_, select
from sqlalchemy.orm import aliased

from service.db.models import Attempt, Checkpoint, Member
from service.db.records.jobs import JobRecord
from service.db.records.record import Record


@dataclass(frozen=True, slots=True)
class RestorePoint(Record):
    """A checkpoint that an attempt starts from."""

    id: str
    step: int


def choose(tx: Connection, job: JobRecord, nodes: Sequence[str]) -> RestorePoint | None:
    """Return the checkpoint that an attempt on these nodes starts from; None to start from nothing.

    It is the job's newest stored one, else its newest committed one that lies on the one node, else the one it
    was submitted with. Without nodes, before they are known, committed ones do not count.
    """
    if not job.attempt and job.restore_checkpoint is None:
        return None  # most jobs that start, and the question is the dearest of a start
    other = aliased(Member)
    alone = ~exists().where(other.attempt_id == Attempt.id, other.node_rank > 0)
    # A node forgets the folder of what is settled; and of what several nodes wrote, each has a part only.
    here = and_(Member.node == nodes[0], ~Member.settled, alone) if len(nodes) == 1 else false()
    query = (
        select(Checkpoint.id, Checkpoint.step)
        .join(Attempt, Attempt.id == Checkpoint.attempt_id)
        .join(Member, Member.attempt_id == Attempt.id)
        .where(
            or_(Checkpoint.job_id == job.id, Checkpoint.id == job.restore_checkpoint),
            or_(Checkpoint.state == "stored", and_(Checkpoint.state == "committed", here)),
        )
        .order_by(
            (Checkpoint.job_id == job.id).desc(),
            Checkpoint.state.desc(),  # "stored" sorts after "committed"
            Attempt.number.desc(),
            Checkpoint.step.desc(),
        )
        .limit(1)
    )
    return RestorePoint.first(tx.execute(query))
