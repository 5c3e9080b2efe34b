"""The shim with real processes: exits, stops, limits, and nothing left behind."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.lifecycle.outcome import error_of
from tests.support import disks
from tests.support.node import PYTHON, Box, alive, ended, lines, log, python
from tests.support.wait import until
from torchyard import wire
from torchyard.injob import layout
from torchyard.states import StopReason
from torchyard.wire import Action, AttemptOrder, Phase, Result, ResultKind
from worker.attempts.folder import AttemptFolder, order
from worker.forward import results
from worker.monitoring import inventory, processes

WAIT = "import signal, time\n{setup}\nprint('ready\\n', end='')\nwhile True: time.sleep(0.02)"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def running(box: Box, setup: str = "", **spec: Any) -> AttemptFolder:
    """A started job that has said that it is ready."""
    folder = box.assign(**({"command": python(WAIT.format(setup=setup))} | spec))
    box.launcher.start(folder.attempt_id)
    until(lambda: "ready" in log(folder), what="the job")
    return folder


def ask(
    folder: AttemptFolder,
    action: Action = Action.STOP,
    *,
    reason: StopReason | None = StopReason.CANCEL,
    grace_s: int = 60,
    serial: int = 1,
) -> None:
    order(folder, AttemptOrder(attempt=folder.attempt_id, action=action, serial=serial, reason=reason, grace_s=grace_s))


def control(folder: AttemptFolder) -> dict[str, Any]:
    path = folder.at(layout.CONTROL)
    return dict(json.loads(path.read_text())) if path.exists() else {}


def nothing_left(folder: AttemptFolder) -> Result:
    result = ended(folder)
    assert processes.of_attempt(folder.attempt_id) == []
    return result


#: The shim's interpreter, with a wall clock that is set while the job runs: by the seconds in a file.
STEPPING = """
import os, runpy, sys, time
real = time.time_ns
def stepped():
    try:
        return real() + int(open({file!r}).read()) * 10**9
    except (OSError, ValueError):  # it is not there, or not written yet
        return real()
time.time_ns = stepped
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_is_set_changes_no_duration(tmp_path: Path, seconds: int) -> None:
    file, interpreter, script = (tmp_path / name for name in ("set", "python", "stepping.py"))
    script.write_text(STEPPING.format(file=str(file)))
    interpreter.write_text(f'#!/bin/sh\nshift 2\nexec {sys.executable} -I -S {script} "$@"\n')
    interpreter.chmod(0o755)
    before = time.monotonic()
    folder = running(Box(tmp_path, python=interpreter))
    file.write_text(str(seconds))
    ask(folder)
    result = nothing_left(folder)
    most = (time.monotonic() - before) * 1e6
    assert result.started_us is not None
    assert 0 < result.ended_us - result.started_us < most
    assert result.held_us is not None
    assert result.ended_us - result.started_us <= result.held_us < most
    launch = folder.read_launch() or {}
    told = results.moment(result, launch)
    assert result.held_us <= told["held_us"] < most + 60e6
    assert told["sent_us"] - result.ended_us == told["held_us"] - result.held_us
    assert results.moment(result, launch | {"boot_id": "another"}).keys() == {"sent_us"}


#: Signals 32 and 33 belong to the C library: nobody else can set them back.
LIBC_SIGNALS = 1 << 31 | 1 << 32


def test_exit_code_and_both_outputs_in_order(box: Box) -> None:
    folder, result = box.run(command=["sh", "-c", "echo out; echo err >&2; echo out again; exit 3"])
    assert (result.kind, result.exit_code, result.signal) == (ResultKind.EXITED, 3, None)
    assert result.started_us is not None
    assert result.ended_us >= result.started_us
    assert log(folder) == "out\nerr\nout again\n"
    assert [(each.rank, each.exit_code) for each in result.ranks] == [(0, 3)]


def test_the_worker_can_have_a_job_fail_for_a_reason(box: Box) -> None:
    folder = running(box, STUBBORN)
    folder.write_failure("disk-limit", "took 3.0 GiB of disk, and a job may take 2.0 GiB on this node")
    result = nothing_left(folder)
    assert (result.kind, result.fingerprint, result.stop) == (ResultKind.KILLED, "disk-limit", None)
    assert error_of(result).message.startswith(
        "took 3.0 GiB of disk, and a job may take 2.0 GiB on this node: write less"
    )


def test_success_names_no_failed_rank(box: Box) -> None:
    _, result = box.run(command=["true"])
    assert (result.exit_code, result.failed_rank, result.stop, result.terminated) == (0, None, None, False)


def test_a_signal_is_told_as_one(box: Box) -> None:
    _, result = box.run(command=["sh", "-c", "kill -SEGV $$"])
    assert (result.exit_code, result.signal, result.failed_rank) == (None, signal.SIGSEGV, 0)


def test_binary_output_arrives_as_it_is(box: Box) -> None:
    folder, _ = box.run(command=["head", "-c", "100000", "/dev/urandom"])
    data = (folder.at(layout.LOGS) / "rank-0.log").read_bytes()
    assert len(data) == 100_000
    assert len(set(data)) == 256


def test_a_job_starts_with_clean_signals(box: Box) -> None:
    folder, _ = box.run(command=["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"])
    masks = [int(line.split()[1], 16) for line in log(folder).splitlines()]
    assert [mask & ~LIBC_SIGNALS for mask in masks] == [0, 0]


def test_sigterm_for_a_job_that_never_polls(box: Box) -> None:
    folder = running(box)
    ask(folder)
    result = nothing_left(folder)
    assert (result.kind, result.signal, result.stop) == (ResultKind.EXITED, signal.SIGTERM, StopReason.CANCEL)
    assert result.terminated
    assert result.failed_rank is None


def test_a_handler_may_save_and_its_exit_code_counts(box: Box) -> None:
    folder = running(box, "def save(*_): print('saved', flush=True); raise SystemExit(5)\nsignal.signal(15, save)")
    ask(folder, reason=StopReason.PREEMPT)
    result = nothing_left(folder)
    assert "saved" in log(folder)
    assert (result.exit_code, result.stop, result.failed_rank) == (5, StopReason.PREEMPT, None)


POLLING = """
import json, os, time
folder = os.environ["TORCHYARD_ATTEMPT_DIR"]
open(folder + "/job/marks/polled-0", "w").close()
print("ready", flush=True)
seen = None
while True:
    try:
        request = json.load(open(folder + "/control.json"))
    except FileNotFoundError:
        request = None
    if request != seen:
        seen = request
        print(request["action"], request["serial"], request["reason"], flush=True)
        if request["action"] == "stop":
            break
    time.sleep(0.02)
with open(folder + "/job/outcome.json", "w") as file:
    json.dump({"stopped_at_step": 41}, file)
"""


def test_a_job_that_polls_stops_by_the_control_file(box: Box) -> None:
    folder = running(box, command=python(POLLING))
    ask(folder, Action.CHECKPOINT, reason=None, serial=1)
    until(lambda: "checkpoint 1 None" in log(folder), what="the first checkpoint")
    ask(folder, Action.CHECKPOINT, reason=None, serial=2)
    until(lambda: "checkpoint 2 None" in log(folder), what="the second checkpoint")
    ask(folder, serial=3)
    result = nothing_left(folder)
    assert "stop 3 cancel" in log(folder)
    assert (result.kind, result.exit_code, result.stop) == (ResultKind.EXITED, 0, StopReason.CANCEL)
    assert (result.terminated, result.stopped_at_step) == (False, 41)


def test_a_job_that_could_not_save_says_why(box: Box) -> None:
    told = '{"unsaved": "no space left", "parts": [{"message": "no space left", "code": "no-room"}]}'
    _, result = box.run(command=["sh", "-c", f"printf '{told}' > $TORCHYARD_ATTEMPT_DIR/job/outcome.json; exit 1"])
    assert (result.exit_code, result.stopped_at_step, result.unsaved) == (1, None, "no space left")
    assert result.unsaved_parts == [wire.Clause(message="no space left", code="no-room")]


def test_the_same_order_again_is_no_new_one(box: Box) -> None:
    folder = running(box, command=python(POLLING))
    ask(folder, Action.CHECKPOINT, reason=None, serial=1)
    until(lambda: "checkpoint 1 None" in log(folder), what="the request")
    ask(folder, Action.RUN, reason=None)
    ask(folder, Action.CHECKPOINT, reason=None, serial=1)
    ask(folder)
    assert nothing_left(folder).exit_code == 0
    assert log(folder).splitlines() == ["ready", "checkpoint 1 None", "stop 2 cancel"]


def test_sigkill_at_the_end_of_the_grace(box: Box) -> None:
    """The job ignores SIGTERM, and so does a daemon that it has double-forked."""
    daemon = "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n"
    folder = running(box, STUBBORN + "\n" + daemon + "print(f'{os.getpid()}\\n', end='')")
    until(lambda: log(folder).count("ready") == 2, what="both processes")
    pids = [int(word) for word in log(folder).split() if word.isdigit()]
    ask(folder, grace_s=60)
    until(lambda: inventory.status_of(folder).phase is Phase.STOPPING, what="the stop")
    ask(folder, grace_s=1, serial=2)  # the earlier end counts
    result = nothing_left(folder)
    assert (result.kind, result.signal, result.stop) == (ResultKind.KILLED, signal.SIGKILL, StopReason.CANCEL)
    assert result.failed_rank is None
    assert not any(alive(pid) for pid in pids)


def test_kill_waits_for_nothing(box: Box) -> None:
    folder = running(box, STUBBORN)
    ask(folder, Action.KILL)
    result = nothing_left(folder)
    assert (result.kind, result.signal, result.stop) == (ResultKind.KILLED, signal.SIGKILL, StopReason.CANCEL)


def test_what_a_job_leaves_behind_is_killed(box: Box, tmp_path: Path) -> None:
    folder, result = box.run(command=["sh", "-c", f"setsid sleep 600 & echo $! > {tmp_path}/pid; exit 0"])
    assert result.exit_code == 0
    assert not alive(int((tmp_path / "pid").read_text()))
    nothing_left(folder)


def test_a_child_of_a_terminated_shell_may_save_too(box: Box, tmp_path: Path) -> None:
    """A shell without a trap dies of SIGTERM at once; the program it ran still gets its grace."""
    child = """
import signal, sys, time

def save(*_):
    time.sleep(0.3)
    open("saved", "w").close()
    sys.exit()

signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(600)
"""
    (tmp_path / "child.py").write_text(child)
    folder = running(box, command=["sh", "-c", f"cd {tmp_path}; {PYTHON} child.py; true"])
    ask(folder)
    result = nothing_left(folder)
    assert result.signal == signal.SIGTERM
    assert (tmp_path / "saved").exists()


def test_time_limit(box: Box) -> None:
    started = time.monotonic()
    folder, result = box.run(command=["sleep", "600"], time_limit=1, grace=30)
    assert processes.of_attempt(folder.attempt_id) == []
    assert (result.stop, result.signal) == (StopReason.TIMEOUT, signal.SIGTERM)
    assert "time limit of 1 s" in (result.message or "")
    assert time.monotonic() - started >= 1


def test_a_stronger_reason_wins_and_a_weaker_does_not(box: Box) -> None:
    folder = running(box, STUBBORN)
    ask(folder, reason=StopReason.PREEMPT, serial=1)
    until(lambda: control(folder).get("reason") == "preempt", what="the stop")
    ask(folder, reason=StopReason.CANCEL, serial=2)
    until(lambda: control(folder).get("reason") == "cancel", what="the stronger stop")
    ask(folder, reason=StopReason.DRAIN, serial=3, grace_s=0)
    result = nothing_left(folder)
    assert (result.kind, result.stop) == (ResultKind.KILLED, StopReason.CANCEL)


def test_a_stop_that_was_there_first_lets_nothing_run(box: Box, tmp_path: Path) -> None:
    folder = box.assign(command=["touch", str(tmp_path / "ran")])
    folder.create()
    ask(folder)
    box.launcher.start(folder.attempt_id)
    result = ended(folder)
    assert (result.kind, result.stop, result.started_us) == (ResultKind.KILLED, StopReason.CANCEL, None)
    assert not (tmp_path / "ran").exists()


def test_signals_to_the_shim_do_not_end_it(box: Box) -> None:
    folder = running(box)
    shim = folder.read_shim()
    assert shim is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(shim.pid, number)
    ask(folder)
    assert nothing_left(folder).kind is ResultKind.EXITED


def test_a_job_that_a_shutdown_of_its_machine_ended_was_lost(box: Box) -> None:
    """Init stops all processes, tells all of them to end, and lets them go on."""
    folder = running(box)
    shim = folder.read_shim()
    assert shim is not None
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT):
        for pid in (shim.child_pid, shim.pid):  # the shim last: it reaps the other
            os.kill(pid, number)
    result = nothing_left(folder)
    assert result.kind is ResultKind.LOST
    assert result.started_us is not None
    assert "its node ended all processes" in error_of(result).message


def test_forged_marks_are_not_believed(box: Box, tmp_path: Path) -> None:
    (tmp_path / "outcome.json").write_text('{"stopped_at_step": 9}')
    _, result = box.run(command=["sh", "-c", f"ln -s {tmp_path}/outcome.json $TORCHYARD_ATTEMPT_DIR/job/outcome.json"])
    assert result.stopped_at_step is None
    for text in ('{"stopped_at_step": "9"}', "[" * 4000, '{"stopped_at_step": true}', "\\0"):
        script = f"printf '{text}' > $TORCHYARD_ATTEMPT_DIR/job/outcome.json"
        _, result = box.run(command=["sh", "-c", script])
        assert (result.exit_code, result.stopped_at_step) == (0, None)
    _, result = box.run(command=["sh", "-c", "mkfifo $TORCHYARD_ATTEMPT_DIR/job/outcome.json"])
    assert result.exit_code == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disks.small(tmp_path / "disk", 4) as folder:
        yield folder


def test_a_full_disk_does_not_cost_the_result(small_disk: Path, tmp_path: Path) -> None:
    """The order still reaches the shim; the control file cannot be written, so a job that polls is told by SIGTERM."""
    box = Box(small_disk)
    folder = box.assign(command=["sh", "-c", f"dd if=/dev/zero of=full bs=64k; touch {tmp_path}/full; sleep 600"])
    box.launcher.start(folder.attempt_id)
    (folder.at(layout.MARKS) / "polled-0").touch()
    until((tmp_path / "full").exists, what="a full disk")
    ask(folder)
    result = nothing_left(folder)
    assert (result.signal, result.stop, result.terminated) == (signal.SIGTERM, StopReason.CANCEL, True)


PRINTS_ON_A_FULL_DISK = """
import itertools
with open("full", "wb", 0) as full:
    try:
        while full.write(bytes(4096)): pass
    except OSError: pass
for n in itertools.count():
    print("epoch", n)
"""


def test_a_program_that_a_full_disk_ends_without_a_word_has_the_reason(small_disk: Path) -> None:
    folder, result = Box(small_disk).run(command=python(PRINTS_ON_A_FULL_DISK))
    assert (result.exit_code, result.disk_full) == (1, True)
    told = results.complete(result, folder.path, dropped_bytes=0, dropped_records=0)
    assert told.fingerprint == "disk-full"
    assert "a disk is full: make room" in error_of(told).message
    crashed = result.model_copy(update={"disk_full": False})
    assert results.complete(crashed, folder.path, dropped_bytes=0, dropped_records=0).fingerprint is None


def test_the_launchers_log_tells_of_the_stop(box: Box) -> None:
    folder = running(box)
    ask(folder, grace_s=7)
    nothing_left(folder)
    assert lines(folder.at(layout.LOGS) / layout.LAUNCHER_LOG) == ["torchyard: stopping (cancel) within 7.0 s"]
