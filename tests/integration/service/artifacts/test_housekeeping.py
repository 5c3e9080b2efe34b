"""What housekeeping at one service removes while another uses it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from service.artifacts import housekeeping, snapshots
from service.db.engine import Database
from service.db.models import Snapshot, SnapshotFile
from service.errors import ProblemError
from service.identity import users
from service.storage.store import BlobStore
from tests.support.locks import is_waiting
from tests.support.wait import until
from torchyard.wire import FileRef

NOW = 100 * housekeeping.DAY_US
FILES = [FileRef(path="train.py", size=1, sha256="0" * 64, mode=0o644)]


@pytest.fixture
def ada(db: Database) -> str:
    with db.write() as tx:
        return users.add(tx, "ada", "member", 0).id


@pytest.mark.parametrize("change", [{"committed": True}, {"created_us": NOW}])
def test_an_old_upload_that_is_used_just_now_stays(
    db: Database, ada: str, tmp_path: Path, change: dict[str, Any]
) -> None:
    made = snapshots.create(db, ada, FILES, 0)
    with ThreadPoolExecutor(1) as elsewhere:
        with db.write() as tx:
            tx.execute(update(Snapshot).values(**change))
            sweeping = elsewhere.submit(housekeeping.sweep, db, BlobStore(tmp_path), NOW)
            until(lambda: is_waiting(db, sweeping), what="the other transaction")
        sweeping.result(60)
    with db.read() as tx:
        assert list(tx.scalars(select(SnapshotFile.snapshot_id))) == [made.id]
        assert list(tx.scalars(select(Snapshot.id))) == [made.id]


def test_an_upload_that_is_removed_just_now_is_to_be_sent_again(db: Database, ada: str) -> None:
    snapshots.create(db, ada, FILES, 0)
    with ThreadPoolExecutor(1) as elsewhere:
        with db.write() as tx:
            tx.execute(delete(SnapshotFile))
            tx.execute(delete(Snapshot))
            creating = elsewhere.submit(snapshots.create, db, ada, FILES, NOW)
            until(lambda: is_waiting(db, creating), what="the other transaction")
        error = creating.exception(60)
    assert error is None if db.is_sqlite else isinstance(error, ProblemError)
