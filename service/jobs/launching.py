"""`launcher: auto` of a submission, decided before it is stored: no node ever gets it."""

from dataclasses import replace

from sqlalchemy import Connection, select

from service.db.engine import Database
from service.db.models import Snapshot, SnapshotFile
from service.errors import field_problem
from service.jobs.submission import LauncherReasonParts, Submission
from service.storage.store import BlobStore
from torchyard.analysis import launchers
from torchyard.analysis.scripts import source
from torchyard.spec import Launcher


def resolve_launcher(db: Database, store: BlobStore, submission: Submission) -> Submission:
    """Return the submission with a launcher and the reason for it, its sender's if that has decided."""
    choice = launchers.choose(
        submission.spec, _reader(db, store, submission) if submission.spec.launcher is Launcher.AUTO else None
    )
    if choice.mismatch:
        raise field_problem("command", choice.mismatch)
    return replace(
        submission,
        spec=choice.applied(submission.spec),
        launcher_reason=_parts(choice.reason) if choice.reason else submission.launcher_reason,
    )


def _parts(reason: launchers.LauncherReason) -> LauncherReasonParts:
    return LauncherReasonParts(words=reason, code=reason.code, subject=str(reason.params.get("subject", "")))


def _reader(db: Database, store: BlobStore, submission: Submission) -> source.Read | None:
    """Return a reader of files of the job's snapshot, if the caller may use it."""
    code = submission.spec.code
    if code is None or submission.spec.command is None:
        return None
    with db.read() as tx:
        files = _files(tx, code) if _may_read(tx, submission, code) else {}

    def read(path: str) -> str | None:
        try:
            return store.path(files[path]).read_text(errors="replace") if path in files else None
        except OSError:
            return None

    return read


def _may_read(tx: Connection, submission: Submission, code: str) -> bool:
    owner = tx.scalar(select(Snapshot.user_id).where(Snapshot.id == code, Snapshot.committed))
    return owner is not None and (
        code == submission.snapshot or submission.caller.admin or owner == submission.caller.user_id
    )


def _files(tx: Connection, code: str) -> dict[str, str]:
    """Return the hashes of the snapshot's Python files, by path."""
    query = select(SnapshotFile.path, SnapshotFile.sha256).where(SnapshotFile.snapshot_id == code)
    query = query.where(SnapshotFile.path.endswith(".py"), SnapshotFile.size <= source.MAX_BYTES)
    return {row.path: row.sha256 for row in tx.execute(query)}
