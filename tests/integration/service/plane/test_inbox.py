"""A worker's files on their way into the store of a running service: placed in its inbox, else uploaded."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.plane import Plane, sha256
from torchyard import wire
from worker.control_plane import ControlPlane
from worker.forward.blobs import BlobSender

DATA = os.urandom(3 * 2**20 + 1)


class Spy(ControlPlane):
    """Counts which way the files took."""

    ways: tuple[str, ...] = ()

    def blob_placed(self, sha256: str, name: str, size: int) -> None:
        self.ways += ("placed",)
        super().blob_placed(sha256, name, size)

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
