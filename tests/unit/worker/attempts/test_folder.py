import errno
import fcntl
import os
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from torchyard.injob import layout
from torchyard.states import StopReason
from torchyard.wire import Action, AttemptOrder, Phase, Result, ResultKind
from worker.attempts import files
from worker.attempts import folder as module
from worker.attempts.folder import AttemptFolder, finish_removals, order
from worker.monitoring import inventory, watch


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    made = AttemptFolder(tmp_path / "attempts", "att-1")
    made.create()
    return made


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", ".hidden", "a b", "x" * 200])
def test_an_id_is_a_plain_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not an attempt id"):
        AttemptFolder(tmp_path, name)


def test_one_holder_of_the_lock(folder: AttemptFolder) -> None:
    descriptor = folder.try_lock()
    assert descriptor is not None
    assert folder.try_lock() is None
    assert folder.locked()
    os.close(descriptor)
    assert not folder.locked()


def test_a_look_at_the_lock_does_not_keep_a_starter_out(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    look = os.open(folder.at(layout.LOCK), os.O_RDONLY | os.O_CREAT)
    fcntl.flock(look, fcntl.LOCK_SH)
    # It is over while the starter waits.
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda _: os.close(look)))
    descriptor = folder.try_lock()
    assert descriptor is not None
    os.close(descriptor)


def test_the_lock_of_a_removed_folder_is_nobodys(folder: AttemptFolder) -> None:
    descriptor = folder.try_lock()
    assert descriptor is not None
    folder.remove()
    assert not folder._is_lock(descriptor)
    os.close(descriptor)
    with pytest.raises(FileNotFoundError):
        folder.try_lock()
    assert list(folder.attempts.iterdir()) == []


def test_temporary_files_go_with_the_folder(
    folder: AttemptFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "base"))
    base = tmp_path / "base"
    base.mkdir()
    folder.make_temporary()
    (folder.temporary / "socket").write_text("left by a killed program")
    folder.make_temporary()
    second = folder.temporary
    assert list(base.iterdir()) == [second]
    assert list(second.iterdir()) == []
    assert second.stat().st_mode & 0o777 == 0o700
    (second / "torchelastic").mkdir()
    folder.remove()
    assert list(base.iterdir()) == []


def test_another_folder_put_in_the_place_of_the_temporary_one_stays(folder: AttemptFolder, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis").touch()
    folder.make_temporary()
    made = folder.temporary
    made.rmdir()
    made.symlink_to(precious)
    folder.remove()
    assert not folder.path.exists()
    assert (precious / "thesis").exists()


def test_the_nonce_is_made_once(folder: AttemptFolder) -> None:
    assert folder.nonce() == AttemptFolder(folder.attempts, folder.attempt_id).nonce()
    assert folder.at(layout.YARD).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", ["", "\0" * 32, "\udcff"])
def test_a_nonce_torn_by_a_power_cut_is_made_anew(folder: AttemptFolder, content: str) -> None:
    """The claim is then refused, where an empty one would be no request at all."""
    folder.at(layout.NONCE).write_text(content, errors="surrogateescape")
    made = folder.nonce()
    assert len(made) == 32
    assert folder.nonce() == made


def test_an_order_for_nobody_is_told(tmp_path: Path) -> None:
    given = AttemptOrder(attempt="att-2", action=Action.KILL)
    assert not order(AttemptFolder(tmp_path, "att-2"), given)


def test_phases_in_their_order(folder: AttemptFolder) -> None:
    def phase() -> Phase | inventory.Died:
        (status,) = inventory.scan(folder.attempts)
        return status.phase

    assert phase() is Phase.PREPARING
    descriptor = folder.try_lock()
    assert descriptor is not None
    folder.write_launch({"devices": ["cpu-0"]})
    folder.mark_started()
    assert phase() is Phase.PREPARING
    shim = {"pid": 1, "start_ticks": 2, "boot_id": "b", "child_pid": 3, "started_us": 4}
    folder.at(layout.SHIM).write_text(str(shim).replace("'", '"'))
    assert phase() is Phase.RUNNING
    folder.at(layout.CONTROL).write_text('{"action": "checkpoint"}')
    assert phase() is Phase.RUNNING
    folder.at(layout.CONTROL).write_text('{"action": "stop"}')
    assert phase() is Phase.STOPPING
    os.close(descriptor)
    assert phase() is inventory.Died.DIED
    folder.write_result(Result(kind=ResultKind.LOST, ended_us=5))
    (status,) = inventory.scan(folder.attempts)
    assert (status.phase, status.started_us, status.devices) == (Phase.ENDED, 4, ("cpu-0",))
    assert not status.living


def test_an_inventory_of_nothing(tmp_path: Path) -> None:
    assert inventory.scan(tmp_path / "attempts") == []


def test_strange_files_are_no_attempts(folder: AttemptFolder) -> None:
    (folder.attempts / "notes.txt").write_text("")
    (folder.attempts / ".removed-att-0").mkdir()
    assert [status.attempt for status in inventory.scan(folder.attempts)] == ["att-1"]


def test_giving_up_on_the_lock_is_quick(folder: AttemptFolder) -> None:
    descriptor = folder.try_lock()
    assert descriptor is not None
    before = time.monotonic()
    assert folder.try_lock() is None
    assert time.monotonic() - before < 5
    os.close(descriptor)


@pytest.mark.parametrize("content", ["", "{", "\0\0", '{"new": "field"}'])
def test_files_torn_by_a_power_cut_hide_no_attempt(folder: AttemptFolder, content: str) -> None:
    """It is still in the inventory, and what has begun is not taken for a job that never ran."""
    folder.mark_started()
    for name in (layout.LOCK, layout.LAUNCH, layout.SHIM, layout.COMMAND):
        folder.at(name).write_text(content)
    (status,) = inventory.scan(folder.attempts)
    assert status.phase is inventory.Died.DIED
    shim = folder.read_shim()
    assert shim is not None
    assert abs(shim.started_us / 1e6 - time.time()) < 60
    assert watch.of_shim(shim, folder.result_pipe).wait(0)
    assert folder.stop_asked() is None


def test_what_is_no_attempt_or_cannot_be_read_hides_no_other(folder: AttemptFolder) -> None:
    (folder.attempts / "lost+found").mkdir()
    unreadable = AttemptFolder(folder.attempts, "att-2")
    unreadable.create()
    unreadable.mark_started()
    unreadable.at(layout.LAUNCH).mkdir()
    assert [status.attempt for status in inventory.scan(folder.attempts)] == ["att-1", "att-2"]


def test_orders_and_results_reach_a_full_disk(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes the space that was kept for it, and a later order that of the one before."""
    folder.write_launch({})
    files.reserve(folder.at(layout.RESULT + ".reserved"), 16384)
    monkeypatch.setattr(files, "write_whole", _full)
    for reason in (StopReason.PREEMPT, StopReason.CANCEL):
        given = AttemptOrder(attempt="att-1", action=Action.STOP, reason=reason)
        assert order(folder, given)
        assert folder.read_command() == given.model_dump(mode="json")
        assert folder.stop_asked() is reason
    folder.write_result(Result(kind=ResultKind.LOST, ended_us=5))
    assert folder.read_result() == Result(kind=ResultKind.LOST, ended_us=5)


def _full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_removal_that_was_cut_short_is_finished(folder: AttemptFolder) -> None:
    folder.at("job").mkdir()
    folder.path.rename(folder.attempts / ".removed-att-1")
    finish_removals(folder.attempts)
    assert list(folder.attempts.iterdir()) == []
