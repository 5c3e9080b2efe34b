"""Blobs that come and go at two services on one database and one store."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from service.artifacts import blobs
from service.db.engine import Database
from service.db.models import Blob
from service.db.unit_of_work import UnitOfWork
from service.storage.store import BlobStore

DATA = b"weights"
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def other(database_url: str) -> Iterator[Database]:
    """The other service's way to the database."""
    made = Database(database_url)
    yield made
    made.dispose()


def _bring(db: Database, store: BlobStore) -> None:
    name = f"{SHA256}.placed"
    (store.inbox / name).write_bytes(DATA)
    blobs.take_over(db, store, name, SHA256, len(DATA), 1)


def _is_known(db: Database) -> bool:
    with db.read() as tx:
        return tx.scalar(select(Blob.sha256)) == SHA256


def test_a_blob_that_nobody_needs_goes(db: Database, tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    _bring(db, store)
    assert blobs.collect(db, store, [SHA256, "no hash"]) == 1
    assert (store.has(SHA256), _is_known(db)) == (False, False)


def test_a_blob_that_comes_again_elsewhere_while_it_is_removed_stays(
    db: Database, other: Database, tmp_path: Path
) -> None:
    store = BlobStore(tmp_path)
    _bring(db, store)
    came: list[bool] = []

    def come_again(_: UnitOfWork) -> None:
        """The row is gone by now, and the file is about to be."""
        if not came:
            came.append(_is_known(db))
            _bring(other, BlobStore(tmp_path))

    db.on_commit(come_again)
    assert blobs.collect(db, store, [SHA256]) == 1
    assert came == [False]
    assert (store.has(SHA256), _is_known(db)) == (True, True)
