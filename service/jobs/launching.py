"""`launcher: auto` of a submission, decided before it is stored: no node ever gets it."""

from dataclasses import replace

from sqlalchemy import Connection, select

from service.context import Context
from service.db.models import Snapshot, SnapshotFile
from service.errors import field_problem
from service.jobs.order import Order
from torchyard.analysis import launchers
from torchyard.analysis.scripts import source
from torchyard.spec import Launcher


def decided(ctx: Context, order: Order) -> Order:
    """The submission with a launcher and the reason for it, its sender's if that has decided."""
    choice = launchers.choose(order.spec, _reader(ctx, order) if order.spec.launcher is Launcher.AUTO else None)
    if choice.mismatch:
        raise field_problem("command", choice.mismatch.removeprefix("command: "))
    return replace(order, spec=choice.applied(order.spec), launcher_reason=choice.reason or order.launcher_reason)


def _reader(ctx: Context, order: Order) -> source.Read | None:
    """Reads files of the job's snapshot, if the caller may use it."""
    code = order.spec.code
    if code is None or order.spec.command is None:
        return None
    with ctx.db.read() as tx:
        files = _files(tx, code) if _may_read(tx, order, code) else {}

    def read(path: str) -> str | None:
        try:
            return ctx.store.path(files[path]).read_text(errors="replace") if path in files else None
        except OSError:
            return None

    return read


def _may_read(tx: Connection, order: Order, code: str) -> bool:
    owner = tx.scalar(select(Snapshot.user_id).where(Snapshot.id == code, Snapshot.committed))
    return owner is not None and (code == order.snapshot or order.caller.admin or owner == order.caller.user_id)


def _files(tx: Connection, code: str) -> dict[str, str]:
    """Hashes of the snapshot's Python files, by path."""
    query = select(SnapshotFile.path, SnapshotFile.sha256).where(SnapshotFile.snapshot_id == code)
    query = query.where(SnapshotFile.path.endswith(".py"), SnapshotFile.size <= source.MAX_BYTES)
    return {row.path: row.sha256 for row in tx.execute(query)}
