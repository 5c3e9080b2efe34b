import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from torchyard.wire import Device, DeviceKind
from worker.devices.locks import DeviceLocks, default_folder

GPUS = [Device(uuid=f"GPU-{name}", index=0, kind=DeviceKind.GPU, name="H200", memory=1) for name in "ab"]
SLOT = Device(uuid="cpu-0", index=0, kind=DeviceKind.CPU_SLOT, name="CPU", memory=1)


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[DeviceLocks]:
    with closing(DeviceLocks(tmp_path / "mine", tmp_path / "locks")) as locks:
        yield locks


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[DeviceLocks]:
    with closing(DeviceLocks(tmp_path / "theirs", tmp_path / "locks")) as locks:
        yield locks


def test_the_second_stack_is_told_who_owns_the_card(mine: DeviceLocks, theirs: DeviceLocks, tmp_path: Path) -> None:
    assert mine.apply(GPUS[:1]) == GPUS[:1]
    first, second = theirs.apply(GPUS)
    assert first.unusable is not None
    assert f"home {tmp_path}/mine" in first.unusable
    assert str(os.getpid()) in first.unusable
    assert [(each.code, each.message, each.params["pid"]) for each in first.findings] == [
        ("other-stack", first.unusable, str(os.getpid()))
    ]
    assert second.unusable is None
    (other,) = mine.apply(GPUS[1:])
    assert f"home {tmp_path}/theirs" in (other.unusable or "")


def test_a_card_is_free_again_when_its_owner_leaves(mine: DeviceLocks, theirs: DeviceLocks) -> None:
    mine.apply(GPUS)
    mine.close()
    assert theirs.apply(GPUS) == GPUS


def test_what_a_shim_of_this_home_keeps_is_ours(mine: DeviceLocks, theirs: DeviceLocks, tmp_path: Path) -> None:
    mine.apply(GPUS)
    shims = [os.dup(descriptor) for descriptor in mine.descriptors(["GPU-a"])]
    mine.close()
    with closing(DeviceLocks(tmp_path / "mine", tmp_path / "locks")) as restarted:
        assert restarted.apply(GPUS) == GPUS
        assert len(restarted.descriptors(["GPU-a", "GPU-b"])) == len(restarted.descriptors(["GPU-b"])) == 2
        assert theirs.apply(GPUS)[0].unusable
    for descriptor in shims:
        os.close(descriptor)


def test_locks_stay_where_old_files_are_removed(mine: DeviceLocks, theirs: DeviceLocks, tmp_path: Path) -> None:
    """systemd-tmpfiles removes a file that is locked, and passes by what lies in a folder that is."""
    mine.apply(GPUS[:1])
    theirs.apply(GPUS[1:])
    folder = os.open(tmp_path / "locks", os.O_RDONLY)
    mine.close()
    with pytest.raises(BlockingIOError):
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    theirs.close()
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with closing(DeviceLocks(tmp_path / "late", tmp_path / "locks")) as late:
        assert late.apply(GPUS) == GPUS
        assert len(late.descriptors(["GPU-a"])) == 1  # the folder is looked through just now
        fcntl.flock(folder, fcntl.LOCK_UN)
        late.apply(GPUS)
        with pytest.raises(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(folder)


def test_slots_are_not_locked(mine: DeviceLocks, theirs: DeviceLocks) -> None:
    assert mine.apply([SLOT]) == theirs.apply([SLOT]) == [SLOT]
    assert mine.descriptors([SLOT.uuid]) == []


def test_everybody_may_use_the_folder(mine: DeviceLocks, tmp_path: Path) -> None:
    mine.apply(GPUS)
    assert stat.S_IMODE((tmp_path / "locks").stat().st_mode) == 0o1777
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "locks").iterdir()} == {0o666}


def test_a_lock_that_cannot_be_opened_makes_the_card_unusable(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("")
    with closing(DeviceLocks(tmp_path, tmp_path / "locks")) as locks:
        (found, _) = locks.apply(GPUS)
        assert "cannot be opened" in (found.unusable or "")
        assert [(each.code, each.params["folder"]) for each in found.findings] == [("lock", f"{tmp_path}/locks")]


def test_a_lock_that_is_a_link_is_not_followed(mine: DeviceLocks, tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "GPU-a.lock").symlink_to(tmp_path / "victim")
    assert mine.apply(GPUS)[0].unusable
    assert not (tmp_path / "victim").exists()


def test_the_folder_is_the_same_for_everybody() -> None:
    assert default_folder().name == "torchyard-gpus"
    assert default_folder().parent in {Path("/run/lock"), Path("/tmp")}
