"""An attempt is started exactly once, whatever is repeated or killed on the way."""

import errno
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from service.lifecycle.outcome import AttemptInputs, decide
from tests.support import disks
from tests.support.node import Box, ended, lines, log, python
from tests.support.wait import until
from torchyard.injob import layout
from torchyard.states import JobState, StopReason
from torchyard.wire import Action, AttemptOrder, Device, DeviceKind, FileRef, Phase, RankExit, Restore, ResultKind
from worker.attempts.folder import AttemptFolder, order
from worker.monitoring import inventory, processes


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def counted(tmp_path: Path) -> list[str]:
    """A command that leaves a line for every time it runs."""
    return ["sh", "-c", f"echo run >> {tmp_path}/runs"]


def starter(root: Path, folder: AttemptFolder, where: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.support.starter", str(root), folder.attempt_id, where])


def test_when_start_returns_the_job_has_begun(box: Box) -> None:
    folder = box.assign(command=["sleep", "60"])
    box.launcher.start(folder.attempt_id)
    shim = folder.read_shim()
    assert shim is not None
    watch = processes.open_process(shim.pid, shim.start_ticks)
    assert watch is not None
    (status,) = inventory.scan(box.attempts)
    assert status.phase is Phase.RUNNING
    assert status.started_us == shim.started_us
    assert status.held_us is not None
    assert inventory.scan(box.attempts)[0].held_us > status.held_us > 0  # type: ignore[operator]
    os.kill(shim.child_pid, signal.SIGKILL)
    assert select.select([watch], [], [], 60)[0] == [watch]
    os.close(watch)
    assert ended(folder).signal == signal.SIGKILL


def test_nobody_clears_away_the_temporary_files_of_a_job_that_runs(box: Box) -> None:
    folder = box.assign(command=["sleep", "60"])
    box.launcher.start(folder.attempt_id)
    temporary = os.open(folder.at(layout.TMP).resolve(), os.O_RDONLY)

    def locked() -> bool:  # which systemd-tmpfiles asks, too
        try:
            fcntl.flock(temporary, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False

    assert locked()
    shim = folder.read_shim()
    assert shim is not None
    os.kill(shim.child_pid, signal.SIGKILL)
    until(lambda: not locked(), what="the end of the lock")
    os.close(temporary)
    assert ended(folder).signal == signal.SIGKILL


def test_five_threads_and_five_processes_start_it_once(box: Box, tmp_path: Path) -> None:
    folder = box.assign(command=counted(tmp_path))
    others = [starter(tmp_path, folder, "never") for _ in range(3)]
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(box.launcher.start, [folder.attempt_id] * 5))
    assert [other.wait() for other in others] == [0, 0, 0]
    assert ended(folder).exit_code == 0
    box.launcher.start(folder.attempt_id)
    assert lines(tmp_path / "runs") == ["run"]


@pytest.mark.parametrize("where", ["claiming", "claim"])
def test_a_starter_killed_before_started_is_no_loss(box: Box, tmp_path: Path, where: str) -> None:
    folder = box.assign(command=counted(tmp_path))
    assert starter(tmp_path, folder, where).wait() == -signal.SIGKILL
    (status,) = inventory.scan(box.attempts)
    assert status.phase is Phase.PREPARING
    assert not box.launcher.finalize_lost(folder.attempt_id)
    box.launcher.start(folder.attempt_id)
    assert ended(folder).exit_code == 0
    assert lines(tmp_path / "runs") == ["run"]


def test_a_starter_killed_before_the_fork_is_finalized_and_nothing_has_run(box: Box, tmp_path: Path) -> None:
    folder = box.assign(command=counted(tmp_path))
    assert starter(tmp_path, folder, "started").wait() == -signal.SIGKILL
    (status,) = inventory.scan(box.attempts)
    assert status.phase is inventory.Died.DIED
    box.launcher.start(folder.attempt_id)
    assert box.launcher.finalize_lost(folder.attempt_id)
    result = ended(folder)
    assert (result.kind, result.started_us) == (ResultKind.LOST, None)
    assert lines(tmp_path / "runs") == []


def test_a_starter_killed_right_after_the_fork_leaves_one_run(box: Box, tmp_path: Path) -> None:
    folder = box.assign(command=counted(tmp_path))
    assert starter(tmp_path, folder, "forked").wait() == -signal.SIGKILL
    box.launcher.start(folder.attempt_id)
    assert ended(folder).exit_code == 0
    assert lines(tmp_path / "runs") == ["run"]


def test_a_job_outlives_the_worker_that_started_it(box: Box, tmp_path: Path) -> None:
    folder = box.assign(command=["sh", "-c", f"read line < {tmp_path}/fifo; echo $line"])
    os.mkfifo(tmp_path / "fifo")
    assert starter(tmp_path, folder, "never").wait() == 0
    (tmp_path / "fifo").write_text("still here\n")
    assert ended(folder).exit_code == 0
    assert log(folder) == "still here\n"


def test_the_same_nonce_claims_again(box: Box, tmp_path: Path) -> None:
    folder = box.assign(command=["true"])
    folder.create()
    assert box.control.claim(folder.attempt_id, folder.nonce())
    box.launcher.start(folder.attempt_id)
    assert ended(folder).exit_code == 0


@pytest.mark.parametrize("refuse", ["launch", "claim"])
def test_what_the_service_no_longer_wants_leaves_no_folder(box: Box, refuse: str) -> None:
    folder = box.assign(command=["true"])
    if refuse == "launch":
        (box.control.root / "launches" / folder.attempt_id).unlink()
    else:
        box.control.claim(folder.attempt_id, "another nonce")
    box.launcher.start(folder.attempt_id)
    assert not folder.path.exists()
    assert inventory.scan(box.attempts) == []


def test_an_id_that_is_a_path_is_refused(box: Box) -> None:
    with pytest.raises(ValueError, match="attempt id"):
        box.launcher.start("../att-1")


def unusable(box: Box, **assigned: object) -> str:
    folder, result = box.run(**assigned)  # type: ignore[arg-type]
    assert result.kind is ResultKind.UNUSABLE
    assert result.started_us is None
    assert not folder.started()
    return result.message or ""


def test_a_missing_script_is_told_with_the_advice(box: Box) -> None:
    message = unusable(box, launcher="python", command=["python", "train.py"], files={"model.py": ""})
    assert "train.py" in message
    assert ".gitignore" in message
    assert "link:" in message


def test_a_missing_interpreter_is_told(box: Box, tmp_path: Path) -> None:
    assert f"{tmp_path}/venv does not exist" in unusable(
        box, launcher="python", command=["-c", "1"], python=str(tmp_path / "venv")
    )


def test_a_blob_that_is_gone_is_told(box: Box) -> None:
    folder = box.assign(files={"run.sh": "true"}, command=["./run.sh"])
    for blob in (box.control.root / "blobs").iterdir():
        blob.unlink()
    box.launcher.start(folder.attempt_id)
    assert "no longer holds" in (ended(folder).message or "")


def test_a_damaged_checkpoint_is_told(box: Box) -> None:
    folder = box.assign(restore={"state.pt": b"good"}, command=["true"])
    for blob in (box.control.root / "blobs").iterdir():
        blob.write_bytes(b"evil")
    box.launcher.start(folder.attempt_id)
    assert "state.pt does not match its SHA-256" in (ended(folder).message or "")


def test_a_gpu_that_is_gone_is_told(tmp_path: Path) -> None:
    slot = Device(uuid="cpu-0", index=0, kind=DeviceKind.CPU_SLOT, name="CPU", memory=0)
    box = Box(tmp_path, present=lambda: [slot])
    assert "cpu-1" in unusable(box, slots=2, command=["true"])


def test_a_program_that_is_none_ends_as_unusable(box: Box) -> None:
    _, result = box.run(command=["no-such-program"])
    assert result.kind is ResultKind.UNUSABLE
    assert result.started_us is None
    assert "cannot start no-such-program" in (result.message or "")
    _, result = box.run(command=["./run.sh"], files={"run.sh": "echo no shebang"})
    assert "#!" in (result.message or "")


def test_code_links_and_restore_reach_the_job(box: Box, tmp_path: Path) -> None:
    (tmp_path / "original" / "data").mkdir(parents=True)
    (tmp_path / "original" / "data" / "x.csv").write_text("rows")
    folder, result = box.run(
        files={"run.sh": "#!/bin/sh\ncat data/x.csv pkg/a.txt $TORCHYARD_RESTORE_DIR/state.pt\n", "pkg/a.txt": "-a-"},
        link=["data"],
        link_root=str(tmp_path / "original"),
        restore={"state.pt": b"saved"},
        command=["./run.sh"],
    )
    assert result.exit_code == 0
    assert log(folder) == "rows-a-saved"


def test_a_live_folder_is_used_as_it_is(box: Box, tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    (live / "train.py").write_text("import os; print(os.getcwd())")
    folder, _ = box.run(live=str(live), launcher="python", command=["python", "train.py"])
    assert log(folder).strip() == str(live)


def kill_shim(folder: AttemptFolder) -> None:
    shim = folder.read_shim()
    assert shim is not None
    os.kill(shim.pid, signal.SIGKILL)
    until(lambda: not folder.locked(), what="the lock to be free")


def test_a_dead_shim_is_found_and_its_leftovers_are_killed(box: Box, tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo $$ >> pids; while :; do sleep 1; done"
    (tmp_path / "stubborn").write_text(stubborn)
    folder = box.assign(command=["sh", "-c", f"cd {tmp_path}; (setsid sh stubborn &); exec sh stubborn"])
    box.launcher.start(folder.attempt_id)
    until(lambda: len(lines(tmp_path / "pids")) == 2, what="both processes")
    kill_shim(folder)
    (status,) = inventory.scan(box.attempts)
    assert status.phase is inventory.Died.DIED
    assert box.launcher.finalize_lost(folder.attempt_id)
    assert processes.of_attempt(folder.attempt_id) == []
    result = ended(folder)
    assert result.kind is ResultKind.LOST
    assert result.started_us == status.started_us
    box.launcher.start(folder.attempt_id)
    assert not box.launcher.finalize_lost(folder.attempt_id)


def test_the_lock_is_not_the_jobs(box: Box) -> None:
    """A process that gets away must not keep the attempt alive, so the job inherits its output and nothing else."""
    folder, _ = box.run(command=["find", "/proc/self/fd", "-type", "l", "-printf", "%l\\n"])
    output = str(folder.at(layout.LOGS) / "rank-0.log")
    assert set(log(folder).splitlines()[:3]) == {"/dev/null", output}
    assert str(folder.at(layout.LOCK)) not in log(folder).splitlines()


def test_start_up_is_fast(box: Box, record_property: Callable[[str, object], None]) -> None:
    """No threshold: the figure is for reading (target 30 ms on an idle machine)."""
    folder = box.assign(command=python("import time; print(time.time_ns() // 1000)"))
    box.launcher.start(folder.attempt_id)
    ended(folder)
    shim = folder.read_shim()
    assert shim is not None
    record_property("job_interpreter_us", int(log(folder)) - shim.started_us)
    assert int(log(folder)) >= shim.started_us


def test_a_stop_ends_an_attempt_that_is_being_prepared(box: Box) -> None:
    """Its code would take for ever to come; nothing runs, and no shim is needed to say so."""
    folder = box.assign(files={f"file-{n}": f"{n}" for n in range(40)}, command=["true"])
    fetch = box.control.fetch_blob
    fetched = []

    def slow(sha256: str, target: Path) -> None:
        fetched.append(sha256)
        order(folder, AttemptOrder(attempt=folder.attempt_id, action=Action.STOP, reason=StopReason.CANCEL))
        fetch(sha256, target)

    box.control.fetch_blob = slow  # type: ignore[method-assign]
    box.launcher.start(folder.attempt_id)
    assert len(fetched) < 40
    result = folder.read_result()
    assert result is not None
    assert (result.kind, result.stop, result.started_us) == (ResultKind.KILLED, StopReason.CANCEL, None)
    assert not folder.started()


def test_a_stop_ends_an_attempt_that_can_never_be_prepared(box: Box) -> None:
    folder = box.assign(files={"a": "a"}, command=["true"])

    def broken(_sha256: str, _target: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    box.control.fetch_blob = broken  # type: ignore[method-assign]
    with pytest.raises(OSError, match="Input/output"):
        box.launcher.start(folder.attempt_id)
    order(folder, AttemptOrder(attempt=folder.attempt_id, action=Action.STOP, reason=StopReason.CANCEL))
    box.launcher.start(folder.attempt_id)
    result = folder.read_result()
    assert result is not None
    assert (result.kind, result.stop) == (ResultKind.KILLED, StopReason.CANCEL)


@pytest.mark.parametrize("place", ["fetch_blob", "shim"])
def test_a_disk_that_is_full_at_the_start_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    with disks.small(tmp_path / "disk", 4) as small:
        box = Box(small)
        folder = box.assign(files={"a": "a"}, command=["true"])
        if place == "shim":
            mark = AttemptFolder.mark_started
            steps: Any = lambda self: (mark(self), disks.fill(small / "full"))  # noqa: E731
            monkeypatch.setattr(AttemptFolder, "mark_started", steps)
        else:
            fetch = box.control.fetch_blob
            steps = lambda sha256, target: (disks.fill(small / "full"), fetch(sha256, target))  # noqa: E731
            monkeypatch.setattr(box.control, "fetch_blob", steps)
        box.launcher.start(folder.attempt_id)
        result = ended(folder)
    assert (result.kind, result.started_us, result.disk_full) == (ResultKind.LOST, None, True)
    outcome = decide(AttemptInputs(stop=None, retries_used=0, max_retries=0), result)
    assert outcome.job_state is JobState.QUEUED
    assert outcome.message.startswith("the node's disk was full when it started this attempt")


def test_a_lost_attempt_tells_what_its_ranks_had_noted(box: Box) -> None:
    folder = box.assign(command=["sleep", "600"])
    box.launcher.start(folder.attempt_id)
    mark = {"rank": 0, "exit_code": 3, "signal": None, "ended_us": 7}
    (folder.at(layout.MARKS) / "exit-0.json").write_text(json.dumps(mark))
    kill_shim(folder)
    assert box.launcher.finalize_lost(folder.attempt_id)
    result = folder.read_result()
    assert result is not None
    assert result.ranks == [RankExit(rank=0, exit_code=3, ended_us=7)]


def test_an_attempt_without_a_folder_is_held_while_its_processes_live(box: Box, tmp_path: Path) -> None:
    """Left out of the inventory it would count as dead, and its job be started a second time."""
    folder = box.assign(command=["sleep", "600"])
    box.launcher.start(folder.attempt_id)
    folder.path.rename(tmp_path / "taken away")
    assert [(each.attempt, each.phase) for each in inventory.whole(box.attempts)] == [
        (folder.attempt_id, Phase.RUNNING)
    ]
    (tmp_path / "other").mkdir()
    assert inventory.whole(tmp_path / "other") == []
    processes.sweep(folder.attempt_id)
    assert inventory.whole(box.attempts) == []


def test_a_checkpoint_that_is_not_stored_yet_comes_from_the_attempt_before(box: Box) -> None:
    first, _ = box.run(command=["true"])
    there = first.at(layout.CHECKPOINTS) / "step-7" / "sub"
    there.mkdir(parents=True)
    (there / "s").write_text("state")
    saved = Restore(
        checkpoint="ckpt-1",
        step=7,
        files=[FileRef(path="sub/s", size=5, sha256="")],
        attempt=first.attempt_id,
        name="step-7",
    )
    command = ["sh", "-c", "cat $TORCHYARD_RESTORE_DIR/sub/s"]
    second, result = box.run(restore_local=saved, command=command)
    assert (result.exit_code, log(second)) == (0, "state")
    (there / "s").write_text("torn")
    _, result = box.run(restore_local=saved, command=command)
    assert "not the size" in (result.message or "")
    with pytest.raises(FileNotFoundError):
        box.run(restore_local=saved.model_copy(update={"attempt": "att-0"}), command=command)
