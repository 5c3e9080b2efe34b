"""An attempt begins with the files that the one before has left: from the store, and from where they were kept."""

import os
import stat
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.node import Box, ended, log
from torchyard.wire import CarriedFile, Carry, Place, ResultKind, Root
from worker.attempts import tree
from worker.attempts.folder import AttemptFolder
from worker.attempts.retained import RetainedFiles
from worker.forward.written import has_saved
from worker.launching import carry

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


def retained(box: Box, path: str, data: bytes, root: str = "code") -> Path:
    """A file of the attempt before that waits on the node."""
    place = box.attempts.parent / "retained" / BEFORE / "job" / root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return place


@pytest.fixture
def fetched(box: Box, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Hashes of what is fetched from the store."""
    hashes: list[str] = []
    fetch = box.control.fetch_blob

    def counted(sha256: str, target: Path) -> None:
        hashes.append(sha256)
        fetch(sha256, target)

    monkeypatch.setattr(box.control, "fetch_blob", counted)
    return hashes


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


def test_a_link_is_a_link_again(box: Box) -> None:
    link = {"mode": stat.S_IFLNK}
    carried = told(
        stored(box, "a/step-5.pt", b"5\n"),
        stored(box, "a/latest", b"step-5.pt").model_copy(update=link),
        stored(box, "folder", b"a").model_copy(update=link),
        stored(box, "out", b"../../yard").model_copy(update=link),
    )
    script = "readlink a/latest; cat a/latest folder/step-5.pt; test -e out || echo none"
    folder, result = box.run(command=["sh", "-c", script], files={}, carry=carried)
    assert (result.exit_code, log(folder)) == (0, "step-5.pt\n5\n5\nnone\n")
    assert "'out' of the attempt before is left out: a link to '../../yard'" in log(folder, name="launcher.log")
    manifest = tree.read(folder.path)
    found = {each.path: each for each in tree.Walk(folder.path, os.getuid(), manifest).files()}
    assert manifest is not None
    assert all(manifest.hash_of(found[file.path]) == file.sha256 for file in carried.files[:3])
    assert not has_saved(folder.path, os.getuid())


def own(file: CarriedFile) -> CarriedFile:
    return file.model_copy(update={"move": True})


def test_what_the_attempt_before_left_on_the_node_is_moved_and_not_fetched(box: Box, fetched: list[str]) -> None:
    snapshot, output = retained(box, "a/snapshot.pt", b"snapshot\n"), retained(box, "o", b"output\n", "output")
    inodes = snapshot.stat().st_ino, output.stat().st_ino
    carried = told(own(stored(box, "a/snapshot.pt", b"snapshot\n")), own(stored(box, "o", b"output\n", Root.OUTPUT)))
    folder, result = box.run(command=["sh", "-c", "cat a/snapshot.pt $TORCHYARD_OUTPUT_DIR/o"], files={}, carry=carried)
    assert (result.exit_code, log(folder)) == (0, "snapshot\noutput\n")
    assert fetched == []
    assert inodes == tuple(folder.at(f"job/{path}").stat().st_ino for path in ("code/a/snapshot.pt", "output/o"))
    assert "begins with 2 files (16 B) of the attempt before, 2 of them found on this node" in log(
        folder, name="launcher.log"
    )
    assert not (box.attempts.parent / "retained" / BEFORE).exists()
    manifest = tree.read(folder.path)
    assert manifest is not None
    found = {each.path: each for each in tree.Walk(folder.path, os.getuid(), manifest).files()}
    assert all(manifest.hash_of(found[file.path]) == file.sha256 for file in carried.files)
    assert not has_saved(folder.path, os.getuid())


@pytest.mark.parametrize("move", [True, False])
def test_a_file_that_somebody_else_has_too_is_copied(box: Box, fetched: list[str], move: bool) -> None:
    place = retained(box, "snapshot.pt", b"old\n")
    if move:
        place.with_name("blob").hardlink_to(place)  # as the store does
    file = stored(box, "snapshot.pt", b"old\n").model_copy(update={"move": move})
    blob = box.control.root / "blobs" / file.sha256
    blob.unlink()
    blob.hardlink_to(place)
    folder, result = box.run(command=["sh", "-c", "printf new > snapshot.pt"], files={}, carry=told(file))
    assert (result.exit_code, fetched) == (0, [])
    assert folder.at("job/code/snapshot.pt").read_bytes() == b"new"
    assert blob.read_bytes() == b"old\n"


@pytest.mark.parametrize("how", ["changed", "link", "folder", "elsewhere", "missing"])
def test_what_is_not_as_it_was_recorded_is_fetched(box: Box, fetched: list[str], tmp_path: Path, how: str) -> None:
    place = retained(box, "a/snapshot.pt", b"SNAPSHOT" if how == "changed" else b"snapshot")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "snapshot.pt").write_bytes(b"snapshot")
    if how in {"link", "folder", "missing"}:
        place.unlink()
    if how == "link":
        place.symlink_to(secret / "snapshot.pt")
    elif how == "folder":
        place.mkdir()
    elif how == "elsewhere":
        place.unlink()
        place.parent.rmdir()
        place.parent.symlink_to(secret)
    carried = told(own(stored(box, "a/snapshot.pt", b"snapshot")))
    folder, result = box.run(command=["cat", "a/snapshot.pt"], files={}, carry=carried)
    assert (result.exit_code, log(folder), len(fetched)) == (0, "snapshot", 1)
    assert folder.at("job/code/a/snapshot.pt").stat().st_ino != (secret / "snapshot.pt").stat().st_ino


def test_a_preparation_that_is_done_again_finds_them_again(
    box: Box, fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    retained(box, "snapshot.pt", b"snapshot")
    folder = box.assign(
        command=["cat", "snapshot.pt"], files={}, carry=told(own(stored(box, "snapshot.pt", b"snapshot")))
    )
    with monkeypatch.context() as broken:
        broken.setattr(AttemptFolder, "make_temporary", Mock(side_effect=OSError("cannot be made")))
        with pytest.raises(OSError, match="cannot be made"):
            box.launcher.start(folder.attempt_id)
    box.launcher.start(folder.attempt_id)
    ended(folder)
    assert (log(folder), fetched) == ("snapshot", [])


def test_a_kept_file_of_the_job_is_moved_and_of_another_copied(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry, "FLOOR", 0)
    own, others = kept(box, "own.pt", b"own\n", move=True), kept(box, "other.pt", b"other\n", move=False)
    inode = (box.attempts.parent / "kept" / BEFORE / "code/own.pt").stat().st_ino
    folder, result = box.run(command=["sh", "-c", "cat own.pt other.pt"], files={"x": ""}, carry=told(own, others))
    assert (result.exit_code, log(folder)) == (0, "own\nother\n")
    assert folder.at("job/code/own.pt").stat().st_ino == inode
    assert not has_saved(folder.path, os.getuid())
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


def test_a_disk_that_runs_short_retains_the_newest(tmp_path: Path) -> None:
    free = iter([1, 5, 9])
    for name in ("att-1", "att-2", "att-3"):
        (tmp_path / "retained" / name / "job").mkdir(parents=True)
    RetainedFiles(tmp_path).make_room(lambda: next(free), 9)
    assert RetainedFiles(tmp_path).attempts() == ["att-3"]
