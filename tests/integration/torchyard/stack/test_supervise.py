"""The supervisor with real processes; it runs in one of its own, because it blocks signals."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.wait import until

SUPERVISOR = """
import os, sys
from pathlib import Path
from torchyard.exceptions import StartError
from torchyard.stack import supervise
from torchyard.stack.supervise import SupervisedProgram, Supervisor

supervise.DYING_S = float(os.environ.get("DYING_S", supervise.DYING_S))
folder = Path(sys.argv[1])
supervisor = Supervisor()
for name, command in zip(sys.argv[2::2], sys.argv[3::2]):
    log = folder / "logs" / f"{name}.log"
    argv = ["sh", "-c", command]
    supervisor.add(SupervisedProgram(name=name, argv=argv, environment=os.environ, log=log))
print("up", flush=True)
try:
    supervisor.wait_until((folder / "never").exists, timeout_s=60, what="it")
except StartError as error:
    print(error, flush=True)
finally:
    supervisor.stop()
"""


@contextmanager
def supervised(folder: Path, **programs: str) -> Iterator[subprocess.Popen[str]]:
    (folder / "logs").mkdir(exist_ok=True)
    words = [word for pair in programs.items() for word in pair]
    command = [sys.executable, "-c", SUPERVISOR, str(folder), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def children(process: subprocess.Popen[str]) -> list[int]:
    return [child.pid for child in psutil.Process(process.pid).children()]


def test_what_dies_is_started_again_and_all_ends_with_a_signal(tmp_path: Path) -> None:
    with supervised(tmp_path, one="exec sleep 60", two="exec sleep 60") as process:
        first = children(process)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        until(lambda: len(children(process)) == 2 and children(process) != first, what="a new child")
        left = children(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert not any(psutil.pid_exists(pid) for pid in left)


def test_children_end_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    with supervised(tmp_path, one="exec sleep 60") as process:
        (child,) = children(process)
        process.kill()
        until(lambda: not psutil.pid_exists(child), what="the child's end")


def test_output_is_kept_and_a_program_that_keeps_dying_is_told_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DYING_S", "0")
    with supervised(tmp_path, bad="echo cannot read the settings; exit 3") as process:
        assert process.stdout is not None
        told = process.stdout.read()
    assert "bad ends at once" in told
    assert "  cannot read the settings" in told
    assert (tmp_path / "logs" / "bad.log").read_text().startswith("cannot read the settings\n")


def test_a_stack_that_was_stopped_and_continued_goes_on(tmp_path: Path) -> None:
    with supervised(tmp_path, one="exec sleep 60") as process:
        watched = psutil.Process(process.pid)
        (first,) = children(process)
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: watched.status() == psutil.STATUS_STOPPED, what="the supervisor's stop")
        # Longer than it waits for a signal: that wait is over when it goes on.
        stopped = time.monotonic()
        until(lambda: time.monotonic() > stopped + 0.2, what="the end of its wait")
        os.kill(process.pid, signal.SIGCONT)
        os.kill(first, signal.SIGKILL)
        until(lambda: len(children(process)) == 1 and children(process) != [first], what="a new child")


DIES_FIVE_TIMES = "echo again >> {tries}; [ $(wc -l < {tries}) -gt 5 ] && exec sleep 60; echo no memory; exit 1"


def test_a_program_that_dies_a_few_times_before_the_stack_is_ready_is_waited_for(tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    with supervised(tmp_path, redis=DIES_FIVE_TIMES.format(tries=tries)) as process:
        assert process.stderr is not None
        said = process.stderr.readline() + process.stderr.readline() + process.stderr.readline()
        assert said.startswith("torchyard: waiting for redis, which ends at once; ")
        assert "no memory" in said
        until(lambda: tries.exists() and len(tries.read_text().split()) == 6, what="the sixth try")
        until(lambda: len(children(process)) == 1, what="the program")


def test_a_log_that_cannot_be_opened_for_a_while_is_waited_for(tmp_path: Path) -> None:
    with supervised(tmp_path, one="exec sleep 60") as process:
        (tmp_path / "logs").rename(tmp_path / "away")
        (first,) = children(process)
        os.kill(first, signal.SIGKILL)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("torchyard: waiting for one, which cannot be started: [Errno 2] ")
        assert not children(process)
        (tmp_path / "away").rename(tmp_path / "logs")
        until(lambda: len(children(process)) == 1, what="a new child")
