import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchyard import wire
from worker.exceptions import RequestRefusedError
from worker.forward.blobs import BlobSender

DATA = b"content" * 1000
HASH = hashlib.sha256(DATA).hexdigest()


class Store:
    """Takes files from the inbox or as uploads."""

    def __init__(self, inbox: Path) -> None:
        self.inbox = inbox
        self.placed: list[bytes] = []
        self.uploaded: list[bytes] = []
        self.refuse = False

    def blob_placed(self, sha256: str, name: str, size: int) -> None:
        if self.refuse:
            raise RequestRefusedError(422, {}, "POST blobs")
        assert name.startswith(f"{sha256}.")
        data = (self.inbox / name).read_bytes()
        assert len(data) == size
        self.placed.append(data)

    def upload_blob(self, sha256: str, size: int, content: Iterator[bytes]) -> None:
        self.uploaded.append(b"".join(content))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / wire.INBOX_PROBE).write_text("same")
    return Store(tmp_path / "inbox")


def send(store: Store, probe: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA)
    sender = BlobSender(store)
    sender.use_inbox(str(store.inbox), probe)
    with (tmp_path / "file").open("rb") as file:
        sender.send(file.fileno(), HASH, len(DATA))


def test_a_file_is_placed_where_the_inbox_is_the_same(store: Store, tmp_path: Path) -> None:
    send(store, "same", tmp_path)
    assert (store.placed, store.uploaded) == ([DATA], [])
    assert [entry.name for entry in store.inbox.iterdir()] == [wire.INBOX_PROBE]


@pytest.mark.parametrize("probe", ["other", ""])
def test_a_file_is_uploaded_where_it_is_another(store: Store, tmp_path: Path, probe: str) -> None:
    send(store, probe, tmp_path)
    assert (store.placed, store.uploaded) == ([], [DATA])


def test_a_file_that_cannot_be_placed_is_uploaded(store: Store, tmp_path: Path) -> None:
    store.refuse = True
    send(store, "same", tmp_path)
    assert store.uploaded == [DATA]
    assert [entry.name for entry in store.inbox.iterdir()] == [wire.INBOX_PROBE]
