"""A worker's files on their way into the store of a running service: placed in its inbox, else uploaded."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import accounts
from tests.support.plane import Plane, sha256
from torchyard import wire
from worker.control.client import ControlPlaneClient
from worker.forward.blobs import BlobSender

DATA = os.urandom(3 * 2**20 + 1)


class Spy(ControlPlaneClient):
    """Counts which way the files took."""

    ways: tuple[str, ...] = ()

    def blob_placed(self, sha256: str, name: str, size: int, *, linked: bool = False) -> None:
        self.ways += ("linked",) if linked else ("placed",)
        super().blob_placed(sha256, name, size, linked=linked)

    def upload_blob(self, sha256: str, size: int, content: Iterator[bytes]) -> None:
        self.ways += ("uploaded",)
        super().upload_blob(sha256, size, content)


@pytest.fixture
def control(data_plane: Plane) -> Iterator[Spy]:
    token = data_plane.node.headers["Authorization"].removeprefix("Bearer ")
    spy = Spy(lambda: str(data_plane.node.base_url), lambda: token)
    yield spy
    spy.close()


def send(control: Spy, inbox: Path, probe: str, folder: Path) -> bool:
    """Sends the data; whether this node may use the inbox."""
    sender = BlobSender(control)
    usable = sender.use_inbox(str(inbox), probe)
    file = folder / "file"
    file.write_bytes(DATA)
    descriptor = os.open(file, os.O_RDONLY)
    sender.send(descriptor, sha256(DATA), len(DATA))
    os.close(descriptor)
    return usable


def check(data_plane: Plane) -> None:
    """The file is in the store, whole and read-only, and the inbox is empty again."""
    store = data_plane.ctx.store
    path = store.path(sha256(DATA))
    assert path.read_bytes() == DATA
    assert path.stat().st_mode & 0o777 == 0o444
    assert [entry.name for entry in store.inbox.iterdir()] == [wire.INBOX_PROBE]


def test_a_node_that_sees_the_inbox_places_its_files_there(data_plane: Plane, control: Spy, tmp_path: Path) -> None:
    store = data_plane.ctx.store
    assert send(control, store.inbox, store.probe, tmp_path)
    assert control.ways == ("placed",)
    check(data_plane)


def test_an_inbox_that_only_looks_the_same_ends_in_an_upload(data_plane: Plane, control: Spy, tmp_path: Path) -> None:
    """A restored copy of the folder, say: the service does not find what was placed."""
    store = data_plane.ctx.store
    shutil.copytree(store.inbox, tmp_path / "inbox")
    assert send(control, tmp_path / "inbox", store.probe, tmp_path)
    assert control.ways == ("placed", "uploaded")
    assert [entry.name for entry in (tmp_path / "inbox").iterdir()] == [wire.INBOX_PROBE]
    check(data_plane)


def test_another_probe_means_another_file_system(data_plane: Plane, control: Spy, tmp_path: Path) -> None:
    assert not send(control, data_plane.ctx.store.inbox, "other words", tmp_path)
    assert control.ways == ("uploaded",)
    check(data_plane)


def linked(control: Spy, data_plane: Plane, file: Path, claimed: bytes = DATA) -> bool:
    """Whether the service takes a second name of the file."""
    sender, store = BlobSender(control), data_plane.ctx.store
    sender.use_inbox(str(store.inbox), store.probe)
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return sender.link(descriptor, sha256(claimed), len(DATA))
    finally:
        os.close(descriptor)


def test_a_file_on_the_same_disk_is_taken_as_it_is(data_plane: Plane, control: Spy, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(DATA)
    assert linked(control, data_plane, file)
    assert control.ways == ("linked",)
    check(data_plane)
    assert data_plane.ctx.store.path(sha256(DATA)).stat().st_ino == file.stat().st_ino


def test_a_linked_file_that_is_refused_stays_where_it_is(data_plane: Plane, control: Spy, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(DATA)
    assert not linked(control, data_plane, file, b"something else")
    os.link(file, tmp_path / "third name")
    assert not linked(control, data_plane, file)
    assert file.read_bytes() == DATA
    store = data_plane.ctx.store
    assert [entry.name for entry in store.inbox.iterdir()] == [wire.INBOX_PROBE]
    assert not store.has(sha256(DATA))


@accounts.needs_root
def test_another_users_file_is_never_linked(data_plane: Plane, control: Spy, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(DATA)
    os.chown(file, 12345, 12345)
    assert not linked(control, data_plane, file)
    assert control.ways == ()
    # Nor does the service take it, should a node try.
    store = data_plane.ctx.store
    placed = store.inbox / f"{sha256(DATA)}.0"
    os.link(file, placed)
    message = wire.Placed(placed=placed.name, size=len(DATA), linked=True)
    url = f"/api/v1/agent/blobs/{sha256(DATA)}"
    assert data_plane.node.post(url, content=message.model_dump_json()).status_code >= 400
    assert not store.has(sha256(DATA))
