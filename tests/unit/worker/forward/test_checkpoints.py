import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from torchyard import wire
from worker.exceptions import RequestRefusedError, UnavailableError
from worker.forward.blobs import BlobSender
from worker.forward.checkpoints import CheckpointForwarder, parse_manifest


class Store:
    """Registers checkpoints and keeps blobs, as the service does."""

    def __init__(self) -> None:
        self.reports: list[wire.CheckpointReport] = []
        self.blobs: dict[str, bytes] = {}
        self.remove: list[str] = []
        self.away = False
        self.refuse: int | None = None

    def checkpoint(self, attempt: str, report: wire.CheckpointReport) -> wire.CheckpointAnswer:
        if self.away:
            raise UnavailableError
        if self.refuse:
            raise RequestRefusedError(self.refuse, {}, "POST checkpoints")
        self.reports.append(report)
        missing = [file.sha256 for file in report.files if file.sha256 and file.sha256 not in self.blobs]
        return wire.CheckpointAnswer(checkpoint="ckpt-1", missing=missing, remove=self.remove)

    def blob_placed(self, sha256: str, name: str, size: int) -> None:
        raise AssertionError

    def upload_blob(self, sha256: str, size: int, content: Iterator[bytes]) -> None:
        self.blobs[sha256] = b"".join(content)


class Background:
    """Runs what was spawned when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def run(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job" / "checkpoints").mkdir(parents=True)
    (tmp_path / "yard").mkdir()
    return tmp_path


def write(folder: Path, step: int, data: bytes = b"weights", **manifest: Any) -> Path:
    place = folder / "job" / "checkpoints" / f"step-{step:09d}"
    (place / "deep").mkdir(parents=True)
    (place / "deep" / "state.pt").write_bytes(data)
    content = {"step": step, "created_us": 5, "metrics": {}, "files": [{"path": "deep/state.pt", "size": len(data)}]}
    (place / "manifest.json").write_text(json.dumps(content | manifest))
    return place


def forwarder(folder: Path, store: Store, background: Background) -> CheckpointForwarder:
    return CheckpointForwarder(
        store, BlobSender(store), "att-1", folder, owner=os.getuid(), spawn=background.waiting.append
    )


def test_a_checkpoint_is_registered_at_once_and_stored_later(folder: Path) -> None:
    store, background = Store(), Background()
    pump = forwarder(folder, store, background)
    write(folder, 7)
    assert pump.pump()
    assert [file.sha256 for report in store.reports for file in report.files] == [None]
    background.run()
    assert not pump.pump()
    assert store.blobs == {hashlib.sha256(b"weights").hexdigest(): b"weights"}
    assert [file.sha256 is None for report in store.reports for file in report.files] == [True, False, False]


def test_what_is_still_being_written_is_left_alone(folder: Path) -> None:
    store = Store()
    write(folder, 7).rename(folder / "job" / "checkpoints" / "step-000000007.tmp")
    (folder / "job" / "checkpoints" / "step-000000008").mkdir()
    assert not forwarder(folder, store, Background()).pump()
    assert not store.reports


def test_a_manifest_that_is_still_being_written_is_read_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, background = Store(), Background()
    pump = forwarder(folder, store, background)
    manifest = write(folder, 7) / "manifest.json"
    content = manifest.read_text()
    manifest.write_text("")
    assert not pump.pump()
    assert not pump.pump()
    assert len(caplog.records) == 1
    manifest.write_text(content)
    assert pump.pump()
    background.run()
    assert not pump.pump()
    assert store.reports[-1].step == 7


def test_the_newest_is_stored_first(folder: Path) -> None:
    store, background = Store(), Background()
    pump = forwarder(folder, store, background)
    for step in (1, 2):
        write(folder, step, b"step %d" % step)
    while pump.pump():
        background.run()
    assert list(store.blobs.values()) == [b"step 2", b"step 1"]


def test_nothing_is_hashed_again_by_the_next_worker(folder: Path) -> None:
    store, background = Store(), Background()
    pump = forwarder(folder, store, background)
    write(folder, 7)
    while pump.pump():
        background.run()
    count = len(store.reports)
    assert not forwarder(folder, store, background).pump()
    assert len(store.reports) == count


def test_a_failure_in_the_background_reaches_the_pump(folder: Path) -> None:
    store, background = Store(), Background()
    pump = forwarder(folder, store, background)
    write(folder, 7)
    pump.pump()
    store.away = True
    background.run()
    with pytest.raises(UnavailableError):
        pump.pump()
    store.away = False
    while pump.pump():
        background.run()
    assert store.blobs


def test_folders_are_removed_but_never_the_newest(folder: Path) -> None:
    store, background = Store(), Background()
    pump = forwarder(folder, store, background)
    old, new = write(folder, 1), write(folder, 2)
    store.remove = [old.name, new.name, "../../elsewhere"]
    while pump.pump():
        background.run()
    assert not old.exists()
    assert new.exists()


def test_a_checkpoint_that_the_service_cannot_take_is_left_out(folder: Path) -> None:
    store = Store()
    store.refuse = 422
    write(folder, 7)
    pump = forwarder(folder, store, Background())
    assert not pump.pump()
    assert not pump.pump()


def test_a_file_of_another_size_is_not_stored(folder: Path) -> None:
    store, background = Store(), Background()
    pump = forwarder(folder, store, background)
    place = write(folder, 7)
    (place / "deep" / "state.pt").write_bytes(b"shorter"[:3])
    pump.pump()
    background.run()
    assert not pump.pump()
    assert not store.blobs


def test_a_link_to_a_secret_is_not_stored(folder: Path, tmp_path: Path) -> None:
    store, background = Store(), Background()
    (tmp_path / "secret").write_bytes(b"secrets")
    place = write(folder, 7)
    (place / "deep" / "state.pt").unlink()
    (place / "deep" / "state.pt").symlink_to(tmp_path / "secret")
    pump = forwarder(folder, store, background)
    pump.pump()
    background.run()
    assert not pump.pump()
    assert not store.blobs


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "./a", "a//b", ""])
def test_a_manifest_names_plain_paths_only(path: str) -> None:
    manifest = {"step": 1, "created_us": 1, "files": [{"path": path, "size": 1}]}
    with pytest.raises(ValueError, match="plain path"):
        parse_manifest("step-1", json.dumps(manifest).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"step": "x"}', b"\xff", b"[" * 100_000])
def test_a_broken_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_manifest("step-1", data)


def test_metrics_that_are_not_finite_are_taken() -> None:
    data = b'{"step": 1, "created_us": 1, "metrics": {"loss": NaN, "top": "inf"}, "files": []}'
    assert parse_manifest("step-1", data).metrics == {"loss": "nan", "top": "inf"}
