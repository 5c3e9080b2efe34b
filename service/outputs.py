"""Files that jobs leave in their output folders."""

from sqlalchemy import Connection, or_, select

from service import blobs, paths
from service.attempts import Facts
from service.context import Context
from service.db.models import Blob, Job, Output
from service.db.upsert import insert
from service.exceptions import BadPathError, NotAHashError
from service.problems import field_problem, not_found
from service.store import is_hash
from torchyard import api
from torchyard.wire import FileRef, Missing, OutputReport

MAX_FILES = 10_000


def report(ctx: Context, attempt: Facts, message: OutputReport, node: str) -> Missing:
    """Takes the list of an attempt's output files, in place of older ones of the same names; answers which blobs are
    missing. Where several nodes have left a file of one name, the lowest node rank's is kept.
    """
    _check(message.files)
    if not message.files:
        return Missing(missing=[])
    with ctx.db.write() as tx:
        old = _hashes(tx, attempt.job_id)
        statement = insert(tx, Output)
        changes = {name: statement.excluded[name] for name in ("attempt_id", "size", "sha256", "node_rank")}
        lower = or_(
            Output.attempt_id != attempt.id,
            Output.node_rank.is_(None),
            Output.node_rank >= statement.excluded.node_rank,
        )
        statement = statement.on_conflict_do_update(index_elements=["job_id", "path"], set_=changes, where=lower)
        node_rank = attempt.nodes.index(node) if len(attempt.nodes) > 1 else None
        tx.execute(statement, [_row(attempt, file, node_rank) for file in message.files])
        kept = _hashes(tx, attempt.job_id)
        replaced = old - kept
        missing = blobs.missing(tx, (file.sha256 for file in message.files if file.sha256 in kept))
    ctx.hub.notify(f"job:{attempt.job_id}")
    blobs.collect(ctx, replaced)
    return Missing(missing=missing)


def _check(files: list[FileRef]) -> None:
    if len(files) > MAX_FILES:
        raise field_problem("files", f"{len(files)} files are too many, {MAX_FILES} at most: pack them into an archive")
    paths.check_tree("files", (file.path for file in files))
    for file in files:
        if not 0 <= file.size < 2**62 // MAX_FILES:
            raise BadPathError("files", file.path, "has a size that no file has")
        if not is_hash(file.sha256):
            raise NotAHashError(file.sha256)


def _row(attempt: Facts, file: FileRef, node_rank: int | None) -> dict[str, object]:
    return {
        "job_id": attempt.job_id,
        "path": file.path,
        "attempt_id": attempt.id,
        "size": file.size,
        "sha256": file.sha256,
        "node_rank": node_rank,
    }


def _hashes(tx: Connection, job_id: str) -> set[str]:
    return set(tx.scalars(select(Output.sha256).where(Output.job_id == job_id)))


def of_job(tx: Connection, job_id: str) -> list[api.Output]:
    """The job's output files that are here, sorted by name; ``not-found`` for an unknown job."""
    if tx.scalar(select(Job.id).where(Job.id == job_id)) is None:
        raise not_found("job", job_id)
    query = select(Output.path, Output.size, Output.sha256).join(Blob, Blob.sha256 == Output.sha256)
    rows = tx.execute(query.where(Output.job_id == job_id).order_by(Output.path))
    return [api.Output(name=row.path, size=row.size, sha256=row.sha256) for row in rows]


def file_hash(tx: Connection, job_id: str, name: str) -> str:
    """Hash of an output file; ``not-found`` for any other name, and until the file is here."""
    query = select(Output.sha256).join(Blob, Blob.sha256 == Output.sha256)
    sha256 = tx.scalar(query.where(Output.job_id == job_id, Output.path == name))
    if sha256 is None:
        raise not_found(f"output of job {job_id[:40]!r} named", name)
    return sha256
