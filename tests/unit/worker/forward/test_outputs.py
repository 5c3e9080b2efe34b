import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchyard import wire
from worker.exceptions import RefusedError, UnavailableError
from worker.forward import outputs
from worker.forward.blobs import BlobSender
from worker.forward.outputs import OutputForwarder


class Store:
    def __init__(self) -> None:
        self.reports: list[wire.OutputReport] = []
        self.blobs: dict[str, bytes] = {}
        self.refuse = 0
        self.forgetful = False

    def outputs(self, attempt: str, report: wire.OutputReport) -> list[str]:
        self.reports.append(report)
        return sorted({file.sha256 for file in report.files} - self.blobs.keys())

    def blob_placed(self, sha256: str, name: str, size: int) -> None:
        raise AssertionError

    def upload_blob(self, sha256: str, size: int, content: Iterator[bytes]) -> None:
        if self.refuse:
            raise RefusedError(self.refuse, {}, "PUT blobs")
        if not self.forgetful:
            self.blobs[sha256] = b"".join(content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job" / "output").mkdir(parents=True)
    return tmp_path


def write(folder: Path, path: str, data: bytes) -> Path:
    place = folder / "job" / "output" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return place


def forwarder(folder: Path, store: Store) -> OutputForwarder:
    return OutputForwarder(store, BlobSender(store), "att-1", folder, owner=os.getuid())


def test_an_empty_folder_costs_no_request(folder: Path) -> None:
    store = Store()
    assert not forwarder(folder, store).pump()
    assert not store.reports


def test_files_are_reported_and_stored_once_per_content(folder: Path) -> None:
    store = Store()
    write(folder, "a.txt", b"same")
    write(folder, "deep/er/b.txt", b"same")
    write(folder, "run.sh", b"other").chmod(0o700)
    assert not forwarder(folder, store).pump()
    files = {file.path: file for file in store.reports[-1].files}
    assert {path: file.mode for path, file in files.items()} == {
        "a.txt": 0o644,
        "run.sh": 0o755,
        "deep/er/b.txt": 0o644,
    }
    assert sorted(store.blobs.values()) == [b"other", b"same"]


def test_links_and_pipes_are_left_out(folder: Path, tmp_path: Path) -> None:
    store = Store()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("key")
    write(folder, "fine", b"fine")
    (folder / "job" / "output" / "folder").symlink_to(tmp_path / "secret")
    (folder / "job" / "output" / "file").symlink_to(tmp_path / "secret" / "key")
    os.mkfifo(folder / "job" / "output" / "pipe")
    assert not forwarder(folder, store).pump()
    assert [file.path for file in store.reports[-1].files] == ["fine"]


def test_too_many_files_are_cut_with_a_note(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "MAX_FILES", 2)
    store = Store()
    for name in "abc":
        write(folder, name, name.encode())
    pump = forwarder(folder, store)
    assert not pump.pump()
    assert [file.path for file in store.reports[-1].files] == ["a", "b"]
    assert "more than 2 files" in pump.notes[0]


def test_a_file_that_the_store_refuses_is_noted_and_left_out(folder: Path) -> None:
    store = Store()
    store.refuse = 413
    write(folder, "big", b"big")
    pump = forwarder(folder, store)
    assert not pump.pump()
    assert "'big' is left out" in pump.notes[0]


def test_a_store_that_loses_files_is_tried_again_later(folder: Path) -> None:
    store = Store()
    store.forgetful = True
    write(folder, "a", b"a")
    pump = forwarder(folder, store)
    with pytest.raises(UnavailableError):
        pump.pump()
    store.forgetful = False
    assert not pump.pump()


def test_a_token_that_is_refused_for_a_while_costs_no_file(folder: Path) -> None:
    store = Store()
    pump = forwarder(folder, store)
    write(folder, "a", b"1")
    store.refuse = 401
    with pytest.raises(RefusedError):
        pump.pump()
    store.refuse = 0
    while pump.pump():
        pass
    assert list(store.blobs.values()) == [b"1"]
    assert pump.notes == []
