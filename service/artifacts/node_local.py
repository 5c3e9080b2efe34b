"""Node-local files: outputs too large for the store, which stay on their nodes until somebody asks for them."""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from service.artifacts.outputs import ON_NODE, WRITER
from service.db.models import Attempt, Job, Member, Output
from torchyard import wire
from torchyard.ids import AttemptId

#: Files that a node is asked for at once.
_AT_ONCE = 1000


def orders(tx: Connection, node: str, kept: Sequence[AttemptId]) -> dict[str, list[wire.BringOrder] | list[AttemptId]]:
    """Return orders to bring or discard the files of these attempts, as fields of `wire.Orders`.

    An attempt that is unknown here (the database was restored from a backup) keeps its files.
    """
    if not kept:
        return {}
    discarded = select(Attempt.id).join(Job, Job.id == Attempt.job_id)
    gone = tx.scalars(discarded.where(Attempt.id.in_(kept), Job.discarded_us.is_not(None)))
    return {"bring": _wanted(tx, node, kept), "discard": list(gone)}


def _wanted(tx: Connection, node: str, kept: Sequence[AttemptId]) -> list[wire.BringOrder]:
    query = (
        select(Output.attempt_id, Output.root, Output.path)
        .join(Member, WRITER)
        .where(Output.attempt_id.in_(kept), Output.state == ON_NODE, Output.wanted, Member.node == node)
        .limit(_AT_ONCE)
    )
    wanted: dict[AttemptId, list[wire.Place]] = {}
    for row in tx.execute(query):
        wanted.setdefault(row.attempt_id, []).append(wire.Place(root=wire.Root(row.root), path=row.path))
    return [wire.BringOrder(attempt=attempt, files=files) for attempt, files in wanted.items()]
