"""The end of a process, and the line that a shim says before: real processes and pipes."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.attempts.folder import ShimRecord
from worker.monitoring import processes, watch
from worker.shim import table
from worker.shim.files import ResultFile


@pytest.fixture
def shim() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends when its input does."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as made:
        yield made


def record(pid: int) -> ShimRecord:
    ticks = table.Process(pid).start_ticks
    return ShimRecord(pid=pid, start_ticks=ticks, boot_id=processes.boot_id(), child_pid=1, started_us=1)


def test_a_result_is_heard_before_the_end(shim: subprocess.Popen[bytes], tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    result = ResultFile(str(path), 1)
    watched = watch.of_shim(record(shim.pid), tmp_path / "result.json.pipe")
    assert not watched.wait(0)
    assert watched.said is None
    told = threading.Timer(0.01, result.write, [{"exit_code": 0}])
    told.start()
    assert not watched.wait(30)
    assert watched.said == b'{"exit_code": 0}\n'
    told.join()  # what it tells is heard before the file is there
    shim.communicate()
    assert watched.wait(30)
    assert path.read_text() == '{"exit_code": 0}'


def test_a_result_that_was_told_before_anybody_listened_is_heard(shim: subprocess.Popen[bytes], tmp_path: Path) -> None:
    ResultFile(str(tmp_path / "result.json"), 1).write({"exit_code": 1})
    watched = watch.of_shim(record(shim.pid), tmp_path / "result.json.pipe")
    assert not watched.wait(30)
    assert watched.said == b'{"exit_code": 1}\n'
    watched.close()


def test_half_a_line_is_nothing(shim: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """The shim was killed while it said it: what counts is that it has ended."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    watched = watch.of_shim(record(shim.pid), pipe)
    with pipe.open("wb") as file:
        file.write(b'{"exit_co')
    assert not watched.wait(30)
    assert not watched.wait(30)
    assert watched.said is None
    shim.communicate()
    assert watched.wait(30)


def test_a_shim_without_a_pipe_is_seen_to_end(shim: subprocess.Popen[bytes], tmp_path: Path) -> None:
    watched = watch.of_shim(record(shim.pid), tmp_path / "none")
    assert not watched.wait(0)
    shim.communicate()
    assert watched.wait(30)
    assert watched.said is None
