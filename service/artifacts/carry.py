"""The files that an attempt begins with: as the attempts before it left them on its node, by node rank."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from service.artifacts.outputs import DELETED, ON_NODE
from service.db.models import Attempt, Blob, Job, Member, Node, Output, SnapshotFile
from service.db.records.jobs import SpecRecord
from service.db.records.record import Record
from torchyard import wire
from torchyard.ids import AttemptId, JobId, now_us

#: Time after its end for which the files of an attempt are waited for.
SETTLE_TIMEOUT_US = 3600 * 1_000_000


@dataclass(frozen=True, slots=True)
class _LeftFile(Record):
    """A row of `outputs` that an earlier attempt has left, with the hash of its blob; None while that is not here."""

    job_id: JobId
    attempt_id: AttemptId
    root: wire.Root
    path: str
    size: int
    sha256: str
    mode: int
    state: str
    blob: str | None


@dataclass(frozen=True, slots=True)
class _Delivery(Record):
    """Progress of an attempt's node with bringing its files."""

    settled: bool
    unreachable: bool
    ended_us: int | None


def files(tx: Connection, job_id: JobId, carried_from: AttemptId, node_rank: int, snapshot: str | None) -> wire.Carry:
    """Return the newest version of each file that `carried_from`, or an attempt it began from itself, has left."""
    earlier = chain(tx, carried_from)
    newest: dict[tuple[wire.Root, str], _LeftFile] = {}
    for file in sorted(_left(tx, earlier, node_rank), key=lambda file: earlier.index(file.attempt_id)):
        newest.setdefault((file.root, file.path), file)
    kept = _changed_since(tx, carried_from, snapshot)
    wanted = [file for file in newest.values() if file.root is not wire.Root.CODE or file.path not in kept]
    return wire.Carry(
        attempt=carried_from,
        settled=_settled(tx, carried_from, node_rank),
        files=[_carried(file, job_id) for file in wanted if file.state != DELETED],
        deleted=[wire.Place(root=file.root, path=file.path) for file in wanted if file.state == DELETED],
    )


def chain(tx: Connection, attempt: AttemptId | None) -> list[AttemptId]:
    """Return an attempt and those that its files come from, the newest first."""
    found: list[AttemptId] = []
    while attempt is not None:
        found.append(attempt)
        attempt = tx.scalar(select(Attempt.carried_from).where(Attempt.id == attempt))
    return found


def _left(tx: Connection, earlier: Sequence[AttemptId], node_rank: int) -> list[_LeftFile]:
    query = (
        select(Output.__table__, Blob.sha256.label("blob"))
        .outerjoin(Blob, Blob.sha256 == Output.sha256)
        .where(Output.attempt_id.in_(earlier), Output.node_rank == node_rank)
    )
    # What never came to the store is lost with its node.
    files = _LeftFile.each(tx.execute(query))
    return [file for file in files if file.state in {DELETED, ON_NODE} or file.blob is not None]


def _carried(file: _LeftFile, job_id: JobId) -> wire.CarriedFile:
    return wire.CarriedFile(
        path=file.path,
        size=file.size,
        sha256=file.sha256,
        mode=file.mode,
        root=file.root,
        attempt=file.attempt_id,
        on_node=file.state == ON_NODE,
        move=file.job_id == job_id,
    )


def _changed_since(tx: Connection, carried_from: AttemptId, snapshot: str | None) -> set[str]:
    """Return the paths of the job's own snapshot, if the carried files were written over another one."""
    query = select(Job.spec).join(Attempt, Attempt.job_id == Job.id).where(Attempt.id == carried_from)
    before = SpecRecord.first(tx.execute(query))
    if snapshot is None or snapshot == (before and before.spec.code):
        return set()
    return set(tx.scalars(select(SnapshotFile.path).where(SnapshotFile.snapshot_id == snapshot)))


def _settled(tx: Connection, attempt: AttemptId, node_rank: int) -> bool:
    """Return true once no more files are waited for: all are reported, the node is silent, or it took too long."""
    query = (
        select(Member.settled, Node.unreachable, Attempt.ended_us)
        .join(Node, Node.name == Member.node)
        .join(Attempt, Attempt.id == Member.attempt_id)
        .where(Member.attempt_id == attempt, Member.node_rank == node_rank)
    )
    found = _Delivery.first(tx.execute(query))
    if found is None or found.settled or found.unreachable:
        return True
    return (found.ended_us or now_us()) < now_us() - SETTLE_TIMEOUT_US
