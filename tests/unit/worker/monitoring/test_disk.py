import json
import os
from pathlib import Path

import pytest

from tests.support.disks import dead, small
from torchyard.injob import layout
from worker.attempts.folder import AttemptFolder
from worker.monitoring import disk
from worker.monitoring.disk import DiskWatch
from worker.monitoring.user_disk import UserDisk

MIB = 1 << 20


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptFolder:
    folder = AttemptFolder(tmp_path, "att-1")
    folder.create()
    folder.at(layout.OUTPUT).mkdir(parents=True)
    folder.make_temporary()
    folder.write_launch({})
    return folder


def fill(path: Path, mebibytes: int) -> Path:
    path.write_bytes(os.urandom(mebibytes * MIB))
    return path


def test_files_count_once_by_the_disk_that_they_take(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    file = fill(inner / "file", 2)
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "other").hardlink_to(file)
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(100 * MIB)
    assert 2 * MIB <= disk.taken(tmp_path) < 3 * MIB


def test_a_link_out_of_the_folder_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").mkdir()
    fill(tmp_path / "outside" / "large", 2)
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    assert disk.taken(tmp_path / "inside") < MIB


def test_what_is_mounted_counts_for_nothing_and_hides_nothing(tmp_path: Path) -> None:
    for name in ("a", "remote", "scratch", "z"):
        (tmp_path / name).mkdir()
    fill(tmp_path / "a" / "file", 2)
    fill(tmp_path / "z" / "file", 2)
    with dead(tmp_path / "remote"), small(tmp_path / "scratch", 8, new=False) as scratch:
        fill(scratch / "file", 4)
        assert 4 * MIB <= disk.taken(tmp_path) < 5 * MIB


@pytest.mark.parametrize("where", ["outputs", "temporary files"])
def test_who_takes_too_much_is_ended_with_the_reason(attempt: AttemptFolder, where: str) -> None:
    watch = DiskWatch(attempt, lambda: 2 * MIB, lambda look: look(), UserDisk(), "ada")
    watch.pump()
    assert attempt.read_command() is None
    fill((attempt.at(layout.OUTPUT) if where == "outputs" else attempt.temporary) / "file", 3)
    watch.look()
    command = json.loads(attempt.at(layout.COMMAND).read_text())
    assert (command["action"], command["fingerprint"]) == ("fail", "disk-limit")
    assert command["message"].startswith("took 3.")
    assert command["message"].endswith(" of disk, and a job may take 2.0 MiB on this node")
    assert attempt.stop_asked() is None


def test_looks_have_a_pause_between_them(attempt: AttemptFolder) -> None:
    looks: list[object] = []
    watch = DiskWatch(attempt, lambda: MIB, lambda look: (looks.append(look), look())[0], UserDisk(), "")
    assert [watch.pump(), watch.pump()] == [False, False]
    assert len(looks) == 1
    DiskWatch(attempt, lambda: None, looks.append, UserDisk(), "ada").pump()
    assert len(looks) == 1
    DiskWatch(attempt, lambda: None, looks.append, UserDisk(lambda: MIB), "ada").pump()
    assert len(looks) == 2
