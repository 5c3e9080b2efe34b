from pathlib import Path

import pytest

from tests.support import disks
from torchyard import wire
from worker.control import registration
from worker.control.registration import Registration


def answer(broker: str) -> wire.Registered:
    return wire.Registered(
        installation="i", broker_url=broker, broker_key_prefix="p", heartbeat_s=5, inbox="", inbox_probe=""
    )


def test_ids_are_made_once_for_each_home(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, again, other = (registration.identity(tmp_path / name) for name in "aab")
    assert first == again
    assert first.home_id != other.home_id
    assert first.boot_id == other.boot_id
    assert first.pid_namespace.startswith("pid:[")


def test_the_registration_says_what_the_machine_has(tmp_path: Path) -> None:
    message = registration.registration(
        "box", registration.identity(tmp_path), [], capabilities=[wire.Capability.GPU_SHARE]
    )
    assert message.node == "box"
    assert message.cpus >= 1
    assert message.memory > 2**28
    assert message.capabilities == ["gpu-share"]


def test_the_answer_of_last_time_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "registration.json"
    kept = Registration(path, lambda: answer("redis://a"))
    assert kept.cached() is None
    kept.renew()
    assert Registration(path, lambda: answer("redis://b")).cached() == answer("redis://a")
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("torn")
    assert kept.cached() is None


def test_a_full_disk_does_not_stop_the_registration(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = Registration(tmp_path / "file" / "registration.json", lambda: answer("redis://a"))
    assert kept.renew() == answer("redis://a")


def test_a_disk_that_takes_no_file_has_nothing_free(tmp_path: Path) -> None:
    with disks.small(tmp_path / "disk", 1, inodes=2) as disk:  # the folder itself has one
        assert registration.disk_free(disk) == 2**20
        (disk / "file").touch()
        assert registration.disk_free(disk) == 0
        (disk / "file").unlink()
        assert registration.disk_free(disk) == 2**20


def test_a_folder_that_is_away_tells_no_disk(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        registration.disk_free(tmp_path / "attempts")
