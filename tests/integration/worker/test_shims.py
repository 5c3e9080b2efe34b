"""Shims that are forked from a server do what those do that are executed, and nothing waits for a server."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.node import PYTHON, Box, log, python
from tests.support.processes import MARK
from tests.support.wait import until
from worker.launching.inherited import inherited
from worker.launching.shims import ShimServer
from worker.shim import table

TELL = (
    "import os, sys; "
    "print(os.getppid(), repr(sys.stdin.read()), os.getsid(0) == os.getpid(), sorted(os.listdir('/proc/self/fd')))"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ShimServer]:
    made = ShimServer(log=tmp_path / "shims.log", environment=inherited(dict(os.environ), [MARK]))
    yield made
    made.close()


def test_a_job_of_a_forked_shim_is_what_one_of_an_executed_is(tmp_path: Path, server: ShimServer) -> None:
    plain, first = Box(tmp_path / "plain").run(command=python(TELL))
    forked, second = Box(tmp_path / "forked", shims=server).run(command=python(TELL))
    assert log(forked).split()[1:] == log(plain).split()[1:]
    different = {"started_us", "ended_us", "held_us", "ranks"}
    assert second.model_dump(exclude=different) == first.model_dump(exclude=different)
    shim = forked.read_shim()
    assert shim is not None
    assert not shim.forked
    assert log(forked).split()[0] == str(shim.pid)


def test_jobs_go_on_without_their_server(tmp_path: Path, server: ShimServer) -> None:
    box = Box(tmp_path, shims=server)
    server.prepare()
    assert server._server is not None
    folder = box.assign(command=["sh", "-c", "while [ ! -e go ]; do sleep 0.02; done; echo went"])
    box.launcher.start(folder.attempt_id)
    server.close()
    (folder.at("job/code") / "go").touch()
    until(folder.has_result, what="the result")
    assert log(folder) == "went\n"
    _, result = box.run(command=["true"])
    assert result.exit_code == 0


def test_one_that_was_killed_is_made_anew_and_one_that_hangs_is_passed_over(
    tmp_path: Path, server: ShimServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, shims=server)
    box.run(command=["true"])
    pids = []
    for number in (signal.SIGKILL, signal.SIGSTOP):
        assert server._server is not None
        pid = server._server.process.pid
        pids.append(pid)
        os.kill(pid, number)
        if number == signal.SIGKILL:
            server._server.process.wait()
        else:  # a new server may take longer to answer
            monkeypatch.setattr("worker.launching.shims.ANSWER_S", 0.2)
        _, result = box.run(command=["true"])
        assert result.exit_code == 0
    assert len(set(pids)) == 2
    assert all(table.find(pid) is None for pid in pids)


def test_secrets_reach_it_through_its_input(tmp_path: Path, server: ShimServer) -> None:
    box = Box(tmp_path, shims=server)
    box.control.values = {"KEY": "of the user"}
    folder, _ = box.run(command=[PYTHON, "-I", "-S", "-c", "import os; print(os.environ['KEY'])"], secrets=["KEY"])
    assert log(folder) == "of the user\n"
