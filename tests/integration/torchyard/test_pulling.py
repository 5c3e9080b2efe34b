"""Files of a job in the places where it would have put them by hand."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.plane import Plane, Seeded, sha256
from torchyard import wire
from torchyard.api import Output
from torchyard.client import pulling
from torchyard.client.client import Client
from torchyard.exceptions import DamagedDownloadError
from torchyard.wire import Root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def wrote(plane: Plane, files: dict[str, bytes], mode: int = 0o644) -> Seeded:
    """A job that has written files, each named ``<root>/<path>``."""
    seeded = plane.job()
    refs = []
    for name, data in files.items():
        root, _, path = name.partition("/")
        refs.append(wire.WrittenFile(path=path, size=len(data), sha256=sha256(data), root=Root(root), mode=mode))
    assert plane.post(seeded, "outputs", wire.OutputReport(files=[], written=refs)).status_code == 200
    for data in files.values():
        plane.put(data)
    return seeded


def pull(client: Client, seeded: Seeded, folder: Path, baseline: dict[str, bytes] | None = None) -> pulling.PullResult:
    found = [
        each.model_copy(update={"baseline": sha256((baseline or {})[each.name])})
        if each.name in (baseline or {})
        else each
        for each in client.outputs(seeded.job, every=True)
    ]
    plan = pulling.planned(found, pulling.as_by_hand(folder))
    return pulling.pull(client, seeded.job, plan, base=folder, careful=True, progress=lambda _: None)


def test_files_go_where_the_program_would_have_written_them(data_plane: Plane, client: Client, folder: Path) -> None:
    seeded = wrote(data_plane, {"code/runs/x": b"1", "job/data/y": b"2", "output/z": b"3"}, mode=0o755)
    pulled = pull(client, seeded, folder)
    assert sorted(pulled.written) == [folder.parent / "data/y", folder / "output/z", folder / "runs/x"]
    assert (folder / "runs/x").read_bytes() == b"1"
    assert os.access(folder / "runs/x", os.X_OK)
    assert pull(client, seeded, folder).refused == []  # again: all is there


def test_a_link_is_a_link_again(data_plane: Plane, client: Client, folder: Path) -> None:
    seeded = wrote(data_plane, {"code/a/latest": b"step-5.pt", "code/out": b"../x"}, mode=stat.S_IFLNK)
    pull(client, seeded, folder)
    assert str((folder / "a/latest").readlink()) == "step-5.pt"
    assert (folder / "out").read_bytes() == b"../x"
    assert pull(client, seeded, folder).refused == []  # again: all is there


def test_what_the_user_has_changed_is_left_alone(data_plane: Plane, client: Client, folder: Path) -> None:
    seeded = wrote(data_plane, {"code/same": b"new", "code/changed": b"new", "code/other": b"new", "code/folder": b"x"})
    (folder / "same").write_bytes(b"as submitted")
    (folder / "changed").write_bytes(b"the user's own")
    (folder / "folder").mkdir()
    pulled = pull(client, seeded, folder, {"same": b"as submitted", "changed": b"as submitted"})
    assert [path.name for path in pulled.written] == ["other", "same"]
    assert {path.name: reason.partition(":")[0] for path, reason in pulled.refused} == {
        "changed": "differs from what the job was submitted with",
        "folder": "something else is in its place",
    }
    assert (folder / "changed").read_bytes() == b"the user's own"


def test_nothing_leads_out_of_the_folder(data_plane: Plane, client: Client, folder: Path, tmp_path: Path) -> None:
    seeded = wrote(data_plane, {"code/data/x": b"1", "job/.bashrc": b"2", "code/link": b"3", "job/a/.ssh/key": b"4"})
    (tmp_path / "away").mkdir()
    (folder / "data").symlink_to("/")
    (folder / "link").symlink_to(tmp_path / "away" / "target")
    pulled = pull(client, seeded, folder)
    assert pulled.written == []
    assert {reason for _, reason in pulled.refused} == {
        "a link leads out of the folder",
        "a hidden file outside the folder",
        "something else is in its place",
    }
    assert list((tmp_path / "away").iterdir()) == []


def output(name: str, node_rank: int, content: bytes, **more: Any) -> Output:
    fields: dict[str, Any] = {"root": "code", "node_rank": node_rank, "size": len(content), "sha256": sha256(content)}
    return Output(name=name, **fields | more)


def test_two_nodes_files_of_one_name_are_side_by_side() -> None:
    files = [
        output("snapshot.pt", 1, b"1"),
        output("snapshot.pt", 0, b"0"),
        output("same", 0, b"s"),
        output("same", 1, b"s"),
        output("only", 1, b"o"),
        output("gone", 0, b"", state="deleted"),
    ]
    plan = pulling.planned(files, pulling.as_in_job(Path("job-7")))
    assert {str(place): file.node_rank for file, place in plan} == {
        "job-7/code/snapshot.pt": 0,
        "job-7/node-1/code/snapshot.pt": 1,
        "job-7/code/same": 0,
        "job-7/code/only": 1,
    }


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x"])
def test_a_name_that_leads_out_is_refused(name: str) -> None:
    with pytest.raises(DamagedDownloadError, match="leads out of the folder"):
        pulling.planned([output(name, 0, b"x")], pulling.as_by_hand(Path("/home/ada/project")))
