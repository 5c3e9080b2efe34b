"""An attempt begins with the files that the one before has left: from the store, and from where they were kept."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.node import Box, ended, log
from torchyard.wire import CarriedFile, Carry, Place, ResultKind, Root
from worker import carry, tree

BEFORE = "att-before"


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def stored(box: Box, path: str, data: bytes, root: Root = Root.CODE) -> CarriedFile:
    return CarriedFile(**box.control.put(path, data).model_dump(), root=root, attempt=BEFORE)


def kept(box: Box, path: str, data: bytes, *, move: bool) -> CarriedFile:
    place = box.attempts.parent / "kept" / BEFORE / "code" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return CarriedFile(path=path, size=len(data), sha256="", root=Root.CODE, attempt=BEFORE, on_node=True, move=move)


def told(*files: CarriedFile, **more: Any) -> Carry:
    return Carry(attempt=BEFORE, settled=True, files=list(files), **more)


def test_files_are_where_they_were_left_and_the_removed_ones_gone(box: Box) -> None:
    script = "cat a/snapshot.pt ../data/x config.yaml; test -e gone.txt || echo gone; cat $TORCHYARD_OUTPUT_DIR/o"
    carried = told(
        stored(box, "a/snapshot.pt", b"snapshot\n"),
        stored(box, "config.yaml", b"lr: 2\n"),
        stored(box, "data/x", b"data\n", Root.JOB),
        stored(box, "o", b"output\n", Root.OUTPUT),
        deleted=[Place(root=Root.CODE, path="gone.txt")],
    )
    files: dict[str, str | bytes] = {"config.yaml": "lr: 1\n", "gone.txt": "x"}
    folder, result = box.run(command=["sh", "-c", script], files=files, carry=carried)
    assert result.exit_code == 0
    assert log(folder) == "snapshot\ndata\nlr: 2\ngone\noutput\n"
    assert "begins with 4 files" in log(folder, name="launcher.log")
    manifest = tree.read(folder.path)
    assert manifest is not None
    assert manifest.carried is not None
    assert manifest.carried.keys() == {(file.root, file.path) for file in carried.files}
    found = {each.path: each for each in tree.Walk(folder.path, os.getuid(), manifest).files()}
    assert all(manifest.hash_of(found[file.path]) == file.sha256 for file in carried.files)


def test_a_kept_file_of_the_job_is_moved_and_of_another_copied(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry, "FLOOR", 0)
    own, others = kept(box, "own.pt", b"own\n", move=True), kept(box, "other.pt", b"other\n", move=False)
    inode = (box.attempts.parent / "kept" / BEFORE / "code/own.pt").stat().st_ino
    folder, result = box.run(command=["sh", "-c", "cat own.pt other.pt"], files={"x": ""}, carry=told(own, others))
    assert (result.exit_code, log(folder)) == (0, "own\nother\n")
    assert folder.at("job/code/own.pt").stat().st_ino == inode
    assert [path.name for path in (box.attempts.parent / "kept" / BEFORE / "code").iterdir()] == ["other.pt"]


def test_a_kept_file_that_is_elsewhere_is_named_and_the_job_runs(box: Box) -> None:
    missing = CarriedFile(path="huge.pt", size=9, sha256="", root=Root.CODE, attempt="att-away", on_node=True)
    folder, result = box.run(command=["true"], files={"x": ""}, carry=told(missing))
    assert result.exit_code == 0
    assert "'huge.pt' (9 B) of the attempt before is not here" in log(folder, name="launcher.log")


def test_a_preparation_that_is_done_again_loses_no_kept_file(box: Box) -> None:
    own = kept(box, "own.pt", b"own\n", move=True)
    folder = box.assign(command=["cat", "own.pt"], files={"x": ""}, carry=told(own, stored(box, "lost", b"lost")))
    blob = box.control.root / "blobs" / told(stored(box, "lost", b"lost")).files[0].sha256
    blob.chmod(0)
    data = blob.read_bytes()
    blob.unlink()
    blob.mkdir()  # a store that fails
    with pytest.raises(OSError, match="directory"):
        box.launcher.start(folder.attempt_id)
    blob.rmdir()
    blob.write_bytes(data)
    box.launcher.start(folder.attempt_id)
    ended(folder)
    assert log(folder) == "own\n"


def test_no_file_is_written_through_a_link(box: Box, tmp_path: Path) -> None:
    (tmp_path / "original" / "data").mkdir(parents=True)
    linked = {"link": ["data"], "link_root": str(tmp_path / "original")}
    carried = told(stored(box, "data/x", b"x"), stored(box, "marks/polled-0", b"", Root.JOB), stored(box, "y", b"y"))
    folder, result = box.run(command=["true"], files={"x": ""}, carry=carried, **linked)
    assert result.kind is ResultKind.EXITED
    assert list((tmp_path / "original" / "data").iterdir()) == []
    assert not folder.at("job/marks/polled-0").exists()
    assert folder.at("job/code/y").exists()
    assert "'data/x' of the attempt before is left out" in log(folder, name="launcher.log")


@pytest.mark.parametrize("path", ["../../lock", "/etc/passwd", "a/../../../x"])
def test_a_path_that_leads_out_is_refused(box: Box, path: str) -> None:
    for carried in (told(stored(box, path, b"x")), told(deleted=[Place(root=Root.CODE, path=path)])):
        folder, result = box.run(command=["true"], files={"x": ""}, carry=carried)
        assert result.kind is ResultKind.UNUSABLE
        assert "is no path inside the folder" in (result.message or "")
        assert folder.at("lock").exists()
