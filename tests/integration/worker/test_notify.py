"""The owner of a process from outside of the queue is told once, and nobody waits for that."""

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from tests.support.nvml import Record, RecordedNvml
from tests.support.wait import until
from worker.devices import offenders
from worker.devices.notify import OwnerNotifier


def background(function: Callable[[], None]) -> None:
    threading.Thread(target=function, daemon=True).start()


def test_the_owner_is_told_once_of_each_process_by_the_administrators_command(tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = f'echo "$TORCHYARD_OWNER $TORCHYARD_PID $TORCHYARD_NODE $TORCHYARD_GPU: $TORCHYARD_MESSAGE" >> {told}'
    notifier = OwnerNotifier("box", command, background)
    own = {name: value for name, value in os.environ.items() if name != "TORCHYARD_ATTEMPT_ID"}
    with subprocess.Popen(["sleep", "60"], env=own) as stray:
        nvml = RecordedNvml(Record("GPU-a", pids=[stray.pid], held={stray.pid: 2**30}))
        for _ in range(3):
            notifier.see(offenders.find(nvml, list))
        user = psutil.Process(stray.pid).username()
        until(lambda: told.exists() and told.read_text(), what="the owner's message")
        stray.kill()
    start = f"{user} {stray.pid} box GPU-a: TorchYard on box: process {stray.pid} (sleep) of {user}, started "
    (line,) = told.read_text().splitlines()
    assert line.startswith(start)
    assert line.endswith("Jobs may wait for it: end it if you no longer need it.")


def test_the_owner_is_told_at_each_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "write"
    program.write_text(f'#!/bin/sh\n{{ echo "$@"; cat; }} >> {tmp_path}/told\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    waiting: list[Callable[[], None]] = []
    with subprocess.Popen(["sleep", "60"]) as stray:
        user = psutil.Process(stray.pid).username()
        at = [("pts/1", user), ("pts/2", "somebody-else"), ("pts/3", user)]
        logged_in = [SimpleNamespace(name=name, terminal=terminal) for terminal, name in at]
        monkeypatch.setattr(psutil, "users", lambda: logged_in)
        OwnerNotifier("box", None, waiting.append).see(
            offenders.find(RecordedNvml(Record("GPU-a", pids=[stray.pid])), list)
        )
        (tell,) = waiting
        tell()
        stray.kill()
    lines = (tmp_path / "told").read_text().splitlines()
    assert lines[::2] == [f"{user} pts/1", f"{user} pts/3"]
    assert all(line.startswith(f"TorchYard on box: process {stray.pid} (sleep)") for line in lines[1::2])


def test_a_command_that_fails_or_hangs_holds_up_nothing(tmp_path: Path) -> None:
    waiting: list[Callable[[], None]] = []
    notifier = OwnerNotifier("box", "exit 3", waiting.append)
    with subprocess.Popen(["sleep", "60"]) as stray:
        nvml = RecordedNvml(Record("GPU-a", pids=[stray.pid]))
        notifier.see(offenders.find(nvml, list))
        (tell,) = waiting  # nothing has run yet
        tell()
        stray.kill()


def test_processes_of_attempts_are_nobodys_to_be_told_of() -> None:
    waiting: list[Callable[[], None]] = []
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "TORCHYARD_ATTEMPT_ID": "att-1"}) as left:
        nvml = RecordedNvml(Record("GPU-a", pids=[left.pid]))
        OwnerNotifier("box", "true", waiting.append).see(offenders.find(nvml, list))
        left.kill()
    assert waiting == []
