"""Which checkpoint the next attempt of a job starts from."""

from sqlalchemy import Connection, Row, and_, or_, select

from service.db.models import Attempt, Checkpoint, Member
from service.lifecycle.rows import JobRow


def choose(tx: Connection, job: JobRow, node: str) -> Row[str, int] | None:
    """The job's newest stored checkpoint, else its newest committed one that lies on this node, else the one it was
    submitted with; None to start from nothing. The row has `id` and `step`.
    """
    here = and_(Member.node == node, ~Member.settled)  # a node forgets the folder of what is settled
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
    return tx.execute(query).one_or_none()
