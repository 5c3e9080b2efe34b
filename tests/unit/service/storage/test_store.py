import os
import threading
from pathlib import Path

import pytest

from service import errors
from service.storage.store import BlobStore, is_hash
from tests.support.plane import sha256


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "artifacts")


def put(store: BlobStore, data: bytes) -> str:
    with store.upload(sha256(data)) as upload:
        upload.write(data)
        upload.commit()
    return sha256(data)


def inbox(store: BlobStore) -> list[str]:
    return sorted(path.name for path in store.inbox.iterdir() if path.name != "probe")


def test_an_upload_is_there_whole_and_read_only(store: BlobStore) -> None:
    data = os.urandom(3_000_000)
    with store.upload(sha256(data)) as upload:
        for start in range(0, len(data), 100_000):
            upload.write(data[start : start + 100_000])
        assert not store.has(sha256(data))
        assert upload.commit() == len(data)
    path = store.path(sha256(data))
    assert path.read_bytes() == data
    assert path.stat().st_mode & 0o777 == 0o444
    assert inbox(store) == []


def test_wrong_content_leaves_nothing(store: BlobStore) -> None:
    def upload_wrong() -> None:
        with store.upload(sha256(b"announced")) as upload:
            upload.write(b"other")
            upload.commit()

    with pytest.raises(errors.WrongHashError):
        upload_wrong()
    assert inbox(store) == []
    assert not store.has(sha256(b"announced"))


def test_more_than_the_limit_is_refused_while_it_arrives(store: BlobStore) -> None:
    with store.upload(sha256(b"12345"), limit=4) as upload, pytest.raises(errors.TooLargeError):
        upload.write(b"12345")
    assert inbox(store) == []


def test_the_same_blob_may_come_twice_at_once(store: BlobStore) -> None:
    data = os.urandom(100_000)
    threads = [threading.Thread(target=put, args=(store, data)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.path(sha256(data)).read_bytes() == data
    assert inbox(store) == []


@pytest.mark.parametrize(
    "name", ["", "..", "../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n", "a" * 32 + "/" + "a" * 31]
)
def test_only_hashes_become_paths(store: BlobStore, name: str) -> None:
    assert not is_hash(name)
    with pytest.raises(errors.NotAHashError):
        store.path(name)


def test_a_placed_file_is_taken_over(store: BlobStore) -> None:
    name = f"{sha256(b'weights')}.x1"
    (store.inbox / name).write_bytes(b"weights")
    inode = (store.inbox / name).stat().st_ino
    store.take_over(name, sha256(b"weights"), 7)
    assert store.path(sha256(b"weights")).read_bytes() == b"weights"
    assert store.path(sha256(b"weights")).stat().st_ino == inode
    assert inbox(store) == []


def test_a_placed_file_of_another_user_is_copied(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{sha256(b'weights')}.x1"
    (store.inbox / name).write_bytes(b"weights")
    inode = (store.inbox / name).stat().st_ino
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    store.take_over(name, sha256(b"weights"), 7)
    assert store.path(sha256(b"weights")).read_bytes() == b"weights"
    assert store.path(sha256(b"weights")).stat().st_ino != inode
    assert inbox(store) == []


def test_a_placed_file_with_other_content_is_refused_and_removed(store: BlobStore) -> None:
    name = f"{sha256(b'weights')}.x1"
    (store.inbox / name).write_bytes(b"garbage")
    with pytest.raises(errors.WrongHashError):
        store.take_over(name, sha256(b"weights"), 7)
    assert inbox(store) == []
    assert not store.has(sha256(b"weights"))


def test_links_and_other_names_are_not_taken_over(store: BlobStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    digest = sha256(b"secret")
    (store.inbox / f"{digest}.soft").symlink_to(secret)
    (store.inbox / f"{digest}.hard").hardlink_to(secret)
    os.mkfifo(store.inbox / f"{digest}.fifo")
    names = [f"{digest}.{kind}" for kind in ("soft", "hard", "fifo", "absent", "../x", "")]
    for name in [*names, digest, "probe", f"{sha256(b'other')}.x", str(secret)]:
        with pytest.raises(errors.NotPlacedError):
            store.take_over(name, digest, 6)
    assert secret.read_bytes() == b"secret"
    assert not store.has(digest)


def test_the_probe_stays_the_same(store: BlobStore) -> None:
    assert (store.inbox / "probe").read_text() == store.probe == BlobStore(store.root).probe


def test_leftovers_are_swept_when_they_are_old(store: BlobStore) -> None:
    (store.inbox / ".upload-1").write_bytes(b"old")
    os.utime(store.inbox / ".upload-1", (1, 1))
    os.utime(store.inbox / "probe", (1, 1))
    (store.inbox / ".upload-2").write_bytes(b"new")
    assert store.sweep_inbox(3600) == 1
    assert inbox(store) == [".upload-2"]
    assert store.probe == BlobStore(store.root).probe


def test_a_blob_can_be_deleted_twice(store: BlobStore) -> None:
    digest = put(store, b"data")
    store.delete(digest)
    store.delete(digest)
    assert not store.has(digest)
    assert store.free() > 0
