"""Outputs: files that jobs write, where they lie, and which of them the store lacks."""

import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from sqlalchemy import Connection, Select, and_, case, select, update

from service.artifacts import blobs
from service.attempts.memory import AttemptIdentity
from service.db.chunks import chunks
from service.db.engine import Database
from service.db.models import Attempt, Blob, Job, Member, Output, SnapshotFile
from service.db.records.jobs import JobVersion, SpecRecord
from service.db.records.record import Record
from service.db.unit_of_work import unit_of
from service.db.upsert import insert
from service.errors import BadPathError, NotAHashError, field_problem, not_found
from service.identity.callers import Caller
from service.infra.times import Clock
from service.jobs import change, present
from service.storage import paths
from service.storage.store import BlobStore, is_hash
from torchyard import api
from torchyard.ids import JobId
from torchyard.wire import FileRef, Missing, OutputReport, Place, Root, WrittenFile

#: Files in one report; a node that has more sends several.
MAX_FILES = 10_000
STORED, ON_NODE, DELETED = "stored", "on-node", "deleted"

#: Joins a file with the member of the attempt that wrote it.
WRITER = and_(Member.attempt_id == Output.attempt_id, Member.node_rank == Output.node_rank)
_ROOTS = case({root.value: place for place, root in enumerate(Root)}, value=Output.root)


@dataclass(frozen=True, slots=True)
class _ReportedFile(Record):
    """A file as an earlier report has it, with the number of the attempt that wrote it."""

    root: str
    path: str
    sha256: str
    size: int
    state: str
    number: int


@dataclass(frozen=True, slots=True)
class _ListedFile(Record):
    """A row of `outputs`, with the attempt's number, the node, and the hashes in the store and in the snapshot."""

    root: Literal["output", "code", "job"]
    node_rank: int
    path: str
    size: int
    sha256: str
    mode: int
    state: Literal["stored", "on-node", "deleted"]
    kept: str | None
    wanted: bool
    number: int
    node: str | None
    blob: str | None
    baseline: str | None


def report(db: Database, store: BlobStore, attempt: AttemptIdentity, message: OutputReport, node: str) -> Missing:
    """Record the files that an attempt has written on a node, in place of what older reports said of them.

    Return the hashes of blobs that are missing, and how many bytes the store has room for.
    """
    node_rank = attempt.nodes.index(node)
    rows = _rows(attempt, message, node_rank)
    replaced: set[str] = set()
    missing: list[str] = []
    if rows or message.saved:
        with db.unit_of_work() as unit:
            tx = unit.tx
            if _put_back(tx, attempt):
                return Missing(missing=[], room=store.room())
            if message.saved:
                tx.execute(update(Attempt).where(Attempt.id == attempt.id, ~Attempt.saved).values(saved=True))
            replaced, stored = _store(tx, attempt, rows)
            missing = blobs.missing(tx, stored)
            unit.tell(f"job:{attempt.job_id}")
        blobs.collect(db, store, replaced)
    return Missing(missing=missing, room=store.room())


def _put_back(tx: Connection, attempt: AttemptIdentity) -> bool:
    """Return whether the attempt was put back: what it wrote is gone. Its job is locked: its end waits."""
    tx.execute(select(Job.id).where(Job.id == attempt.job_id).with_for_update(key_share=True))
    # One that is only told to stop may still end by itself, and then what it wrote is the job's.
    return tx.scalar(present.put_back_attempts().where(Attempt.id == attempt.id)) is not None


def _rows(attempt: AttemptIdentity, message: OutputReport, node_rank: int) -> list[dict[str, Any]]:
    _check(message)
    common = {"job_id": attempt.job_id, "attempt_id": attempt.id, "node_rank": node_rank, "wanted": False}
    return [
        *(common | _of_file(file, Root.OUTPUT, STORED, None) for file in message.files),
        *(common | _of_written(file, message.kept) for file in message.written),
        *(common | _of_deleted(place) for place in message.deleted),
    ]


def _check(message: OutputReport) -> None:
    count = len(message.files) + len(message.written) + len(message.deleted)
    if count > MAX_FILES:
        raise field_problem("files", f"{count} files are too many, {MAX_FILES} at most: send several reports")
    paths.check_tree("files", (file.path for file in message.files))
    for root in Root:
        paths.check_tree("written", (file.path for file in message.written if file.root is root))
    for place in message.deleted:
        paths.check("deleted", place.path)
    for file in chain(message.files, message.written):
        if not 0 <= file.size < 2**62 // MAX_FILES:
            raise BadPathError("files", file.path, "has a size that no file has")
        if not is_hash(file.sha256) and not (isinstance(file, WrittenFile) and file.on_node and not file.sha256):
            raise NotAHashError(file.sha256)


def _of_file(file: FileRef, root: Root, state: str, kept: str | None) -> dict[str, Any]:
    mode = stat.S_IFLNK if file.is_link else 0o755 if file.mode & 0o100 else 0o644
    return {"root": root.value, "path": file.path, "size": file.size, "sha256": file.sha256, "mode": mode} | {
        "state": state,
        "kept": kept,
    }


def _of_written(file: WrittenFile, kept: str) -> dict[str, Any]:
    return _of_file(file, file.root, ON_NODE, kept) if file.on_node else _of_file(file, file.root, STORED, None)


def _of_deleted(place: Place) -> dict[str, Any]:
    return {"root": place.root.value, "path": place.path, "size": 0, "sha256": "", "mode": 0o644} | {
        "state": DELETED,
        "kept": None,
    }


def _store(tx: Connection, attempt: AttemptIdentity, rows: list[dict[str, Any]]) -> tuple[set[str], list[str]]:
    """Write the rows that no later attempt has written; return the hashes that they replace, and those to store."""
    if not rows:
        return set(), []
    before = {(row.root, row.path): row for row in _before(tx, attempt, rows)}
    newer = {place for place, row in before.items() if row.number > attempt.number}
    current = {(row["root"], row["path"]): row for row in rows if (row["root"], row["path"]) not in newer}
    if not current:
        return set(), []
    statement = insert(tx, Output)
    names = ("attempt_id", "size", "sha256", "mode", "state", "kept", "wanted")
    key = ["job_id", "root", "node_rank", "path"]
    statement = statement.on_conflict_do_update(
        index_elements=key, set_={name: statement.excluded[name] for name in names}
    )
    tx.execute(statement, list(current.values()))
    older = (before[place] for place in current if place in before)
    grown = _stored_size(current.values()) - sum(row.size for row in older if row.state == STORED)
    unit_of(tx).count_stored(attempt.job_id, grown)
    replaced = {before[place].sha256 for place, row in current.items() if place in before}
    return replaced - {""}, [row["sha256"] for row in current.values() if row["state"] == STORED]


def _stored_size(rows: Iterable[dict[str, Any]]) -> int:
    return sum(row["size"] for row in rows if row["state"] == STORED)


def _before(tx: Connection, attempt: AttemptIdentity, rows: list[dict[str, Any]]) -> Iterator[_ReportedFile]:
    for some in chunks(sorted({row["path"] for row in rows})):
        query = (
            select(Output.root, Output.path, Output.sha256, Output.size, Output.state, Attempt.number)
            .join(Attempt, Attempt.id == Output.attempt_id)
            .where(Output.job_id == attempt.job_id, Output.node_rank == rows[0]["node_rank"], Output.path.in_(some))
        )
        yield from _ReportedFile.each(tx.execute(query))


def of_job(db: Database, job_id: JobId, *, every: bool = False) -> list[api.Output]:
    """Return the job's files, sorted by name; ``not-found`` for an unknown job.

    Unless `every` one is wanted, of each name the one that `file_hash` takes, if it is here.
    """
    with db.read() as tx:
        job = SpecRecord.first(tx.execute(select(Job.spec).where(Job.id == job_id)))
        if job is None:
            raise not_found("job", job_id)
        found = _ListedFile.all(tx.execute(_all_of(job_id, job.spec.code)))
    return [_presented(file) for file in (found if every else _first_of_each(found))]


def _all_of(job_id: JobId, snapshot: str | None) -> Select[Any]:
    here = and_(SnapshotFile.snapshot_id == (snapshot or ""), SnapshotFile.path == Output.path, Output.root == "code")
    columns = (Attempt.number, Member.node, Blob.sha256.label("blob"), SnapshotFile.sha256.label("baseline"))
    return (
        select(Output.__table__, *columns)
        .join(Attempt, Attempt.id == Output.attempt_id)
        .outerjoin(Member, WRITER)
        .outerjoin(Blob, Blob.sha256 == Output.sha256)
        .outerjoin(SnapshotFile, here)
        .where(Output.job_id == job_id)
        .order_by(Output.path, _ROOTS, Output.node_rank)
    )


def _first_of_each(files: Sequence[_ListedFile]) -> list[_ListedFile]:
    first: dict[str, _ListedFile] = {}
    for file in files:
        if file.state == STORED and file.blob is not None:
            first.setdefault(file.path, file)
    return list(first.values())


def _presented(file: _ListedFile) -> api.Output:
    return api.Output(
        name=file.path,
        size=file.size,
        sha256=file.sha256,
        root=file.root,
        node_rank=file.node_rank,
        node=file.node,
        attempt=file.number,
        state="arriving" if file.state == STORED and file.blob is None else file.state,
        place=f"{file.kept}/{file.root}/{file.path}" if file.kept else None,
        wanted=file.wanted,
        baseline=file.baseline,
        mode=file.mode,
    )


def file_hash(db: Database, job_id: JobId, name: str, *, root: Root | None = None, node_rank: int | None = None) -> str:
    """Return the hash of a stored file, else ``not-found``.

    Of several with one name: the output folder's before the working folder's, the lowest node rank's before others'.
    """
    query = select(Output.sha256).join(Blob, Blob.sha256 == Output.sha256)
    query = query.where(Output.job_id == job_id, Output.path == name, Output.state == STORED)
    if root is not None:
        query = query.where(Output.root == root.value)
    if node_rank is not None:
        query = query.where(Output.node_rank == node_rank)
    with db.read() as tx:
        sha256 = tx.scalar(query.order_by(_ROOTS, Output.node_rank).limit(1))
    if sha256 is None:
        raise not_found(f"output of job {job_id[:40]!r} named", name)
    return sha256


def bring(db: Database, clock: Clock, caller: Caller, ref: str) -> JobVersion:
    """Ask the nodes for the node-local files of a job, at the request of its owner; return the job's version."""

    def ask(tx: Connection, job_id: JobId, _actor: str | None, _now: int) -> None:
        waiting = (Output.job_id == job_id, Output.state == ON_NODE)
        tx.execute(update(Output).where(*waiting).values(wanted=True))
        unit_of(tx).nudge(*tx.scalars(select(Member.node).distinct().join(Output, WRITER).where(*waiting)))
        unit_of(tx).tell_job(job_id)

    return change.act(db, clock, caller, ref, ask)
