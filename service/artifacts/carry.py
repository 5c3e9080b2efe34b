"""The files that an attempt begins with: as the attempts before it left them on its node, by node rank."""

from typing import Any

from sqlalchemy import Connection, Row, select

from service.artifacts.outputs import DELETED, ON_NODE
from service.db.models import Attempt, Blob, Job, Member, Node, Output, SnapshotFile
from torchyard import wire
from torchyard.ids import now_us

#: Time after its end for which the files of an attempt are waited for.
SETTLE_TIMEOUT_US = 3600 * 1_000_000


def files(tx: Connection, job_id: str, carried_from: str, node_rank: int, snapshot: str | None) -> wire.Carry:
    """Return the newest version of each file that `carried_from`, or an attempt it began from itself, has left."""
    chain = _chain(tx, carried_from)
    newest: dict[tuple[str, str], Row[Any]] = {}
    for row in sorted(_rows(tx, chain, node_rank), key=lambda row: chain.index(row.attempt_id)):
        newest.setdefault((row.root, row.path), row)
    kept = _changed_since(tx, carried_from, snapshot)
    wanted = [row for row in newest.values() if row.root != wire.Root.CODE or row.path not in kept]
    return wire.Carry(
        attempt=carried_from,
        settled=_settled(tx, carried_from, node_rank),
        files=[_carried(row, job_id) for row in wanted if row.state != DELETED],
        deleted=[wire.Place(root=wire.Root(row.root), path=row.path) for row in wanted if row.state == DELETED],
    )


def _chain(tx: Connection, attempt: str | None) -> list[str]:
    chain: list[str] = []
    while attempt is not None:
        chain.append(attempt)
        attempt = tx.scalar(select(Attempt.carried_from).where(Attempt.id == attempt))
    return chain


def _rows(tx: Connection, chain: list[str], node_rank: int) -> list[Row[Any]]:
    query = (
        select(Output.__table__, Blob.sha256.label("blob"))
        .outerjoin(Blob, Blob.sha256 == Output.sha256)
        .where(Output.attempt_id.in_(chain), Output.node_rank == node_rank)
    )
    # What never came to the store is lost with its node.
    return [row for row in tx.execute(query) if row.state in {DELETED, ON_NODE} or row.blob is not None]


def _carried(row: Row[Any], job_id: str) -> wire.CarriedFile:
    return wire.CarriedFile(
        path=row.path,
        size=row.size,
        sha256=row.sha256,
        mode=row.mode,
        root=wire.Root(row.root),
        attempt=row.attempt_id,
        on_node=row.state == ON_NODE,
        move=row.job_id == job_id,
    )


def _changed_since(tx: Connection, carried_from: str, snapshot: str | None) -> set[str]:
    """Return the paths of the job's own snapshot, if the carried files were written over another one."""
    query = select(Job.spec).join(Attempt, Attempt.job_id == Job.id).where(Attempt.id == carried_from)
    before = (tx.scalar(query) or {}).get("code")
    if snapshot is None or snapshot == before:
        return set()
    return set(tx.scalars(select(SnapshotFile.path).where(SnapshotFile.snapshot_id == snapshot)))


def _settled(tx: Connection, attempt: str, node_rank: int) -> bool:
    """Return true once no more files are waited for: all are reported, the node is silent, or it took too long."""
    query = (
        select(Member.settled, Node.unreachable, Attempt.ended_us)
        .join(Node, Node.name == Member.node)
        .join(Attempt, Attempt.id == Member.attempt_id)
        .where(Member.attempt_id == attempt, Member.node_rank == node_rank)
    )
    row = tx.execute(query).one_or_none()
    return row is None or row.settled or row.unreachable or (row.ended_us or now_us()) < now_us() - SETTLE_TIMEOUT_US
