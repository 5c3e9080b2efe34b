import os
from pathlib import Path

import pytest

from service.backup import files

ONE, TWO = "a" * 64, "b" * 64


def blob(store: Path, name: str, content: bytes = b"data") -> Path:
    path = store / name[:2] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_blobs_are_linked_and_each_is_brought_once(tmp_path: Path) -> None:
    first = blob(tmp_path / "store", ONE)
    assert files.mirror_blobs(tmp_path / "store", tmp_path / "kept") == 1
    blob(tmp_path / "store", TWO)
    assert files.mirror_blobs(tmp_path / "store", tmp_path / "kept") == 1
    assert (tmp_path / "kept" / "aa" / ONE).samefile(first)


def test_a_blob_is_copied_where_no_link_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = blob(tmp_path / "store", ONE)

    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    files.mirror_blobs(tmp_path / "store", tmp_path / "kept")
    copy = tmp_path / "kept" / "aa" / ONE
    assert copy.read_bytes() == b"data"
    assert not copy.samefile(first)
    assert [path.name for path in copy.parent.iterdir()] == [ONE]


def test_a_blob_that_has_vanished_is_told(tmp_path: Path) -> None:
    assert not files.bring_blob(tmp_path / "store", tmp_path / "kept", ONE)


def test_blobs_that_nobody_names_are_removed(tmp_path: Path) -> None:
    for name in (ONE, TWO):
        blob(tmp_path, name)
    files.prune_blobs(tmp_path, {TWO})
    assert [path.name for path in tmp_path.glob("??/*")] == [TWO]


def test_logs_are_copied_as_they_grow_and_removed_with_their_attempt(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "kept"
    (source / "att_1").mkdir(parents=True)
    log = source / "att_1" / "0.log"
    log.write_bytes(b"one\n")
    files.mirror_logs(source, target)
    with log.open("ab") as file:
        file.write(b"two\n")
    assert (target / "att_1" / "0.log").read_bytes() == b"one\n"
    files.mirror_logs(source, target)
    assert (target / "att_1" / "0.log").read_bytes() == b"one\ntwo\n"
    log.unlink()
    log.parent.rmdir()
    files.mirror_logs(source, target)
    assert list(target.iterdir()) == []
