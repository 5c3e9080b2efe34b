"""Ranks seen through the kernel's tables: real processes with real sockets, and nobody asks them."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.wait import until
from worker.shim import joining, table
from worker.shim.joining import JoinWatch, RankConnections

LISTENS = (
    "import socket\ns = socket.create_server(('127.0.0.1', 0))\nprint(s.getsockname()[1], flush=True)\n"
    "k = s.accept()\ninput()"
)
CONNECTS = "import socket\ns = socket.create_connection(('127.0.0.1', {port}))\nprint(flush=True)\ninput()"
#: A new socket for each try, kept until the next, as torch's store client does.
SEEKS = (
    "import socket, time\nkept = []\nprint(flush=True)\nwhile True:\n    s = socket.socket()\n"
    "    s.connect_ex(('127.0.0.1', {port}))\n    kept = [s]\n    time.sleep(0.05)\n"
)
IDLES = "print(flush=True)\ninput()"


class Started(NamedTuple):
    """A rank's wrapper, and the first line that its program said."""

    pid: int
    said: str


Start = Callable[..., Started]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a program below a process of its own, as a wrapper does, or one process further down."""
    started: list[subprocess.Popen[str]] = []

    def begin(code: str, *, deeper: bool = False) -> Started:
        for _ in range(1 + deeper):
            code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {code!r}])"
        words = [sys.executable, "-c", code]
        pipe = subprocess.PIPE
        child = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        started.append(child)
        assert child.stdout is not None
        return Started(child.pid, child.stdout.readline().strip())

    yield begin
    for child in started:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def look(ranks: RankConnections, agent: int, *wrappers: Started) -> RankConnections:
    ranks.look(agent, [each.pid for each in wrappers])
    return ranks


def test_a_rank_that_is_connected_with_another_has_joined(start: Start) -> None:
    first, agent = start(LISTENS), start(IDLES).pid
    assert not look(RankConnections(), agent, first).joined
    second = start(CONNECTS.format(port=first.said))
    until(lambda: look(RankConnections(), agent, first, second).joined, seconds=30, what="the connection")


def test_a_rank_that_is_connected_with_the_agent_has_joined_and_with_others_has_not(start: Start) -> None:
    store = start(LISTENS)
    rank = start(CONNECTS.format(port=store.said))
    (agent,) = (each.pid for each in table.descendants(store.pid))
    until(lambda: look(RankConnections(), agent, rank).joined, seconds=30, what="the connection")
    assert not look(RankConnections(), start(IDLES).pid, rank).joined


@pytest.mark.parametrize("deeper", [False, True])
def test_ranks_that_all_seek_in_vain_are_lost(start: Start, port: int, deeper: bool) -> None:
    ranks, seeks = RankConnections(), SEEKS.format(port=port)
    agent, first, second = start(IDLES).pid, start(seeks, deeper=deeper), start(seeks, deeper=deeper)
    until(lambda: look(ranks, agent, first, second).lost, seconds=30, what="ranks that seek")
    assert ranks.own_processes is deeper


def test_one_rank_that_does_not_seek_may_yet_open_the_store(start: Start, port: int) -> None:
    seeker, ranks, agent = start(SEEKS.format(port=port)), RankConnections(), start(IDLES).pid
    until(lambda: look(ranks, agent, seeker).lost, seconds=30, what="a rank that seeks")
    assert not look(ranks, agent, seeker, start(IDLES)).lost


def launch(tmp_path: Path, meets: int, here: int) -> dict[str, object]:
    return {"meets": meets, "local_world_size": here, "paths": {"unjoined": str(tmp_path / "unjoined")}}


def test_what_has_not_joined_is_told_once_and_taken_back(
    tmp_path: Path, start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    join_watch, mark = JoinWatch(launch(tmp_path, 2, 2), 0.0), tmp_path / "unjoined"
    first, second, agent = start(LISTENS), start(IDLES), start(IDLES).pid
    join_watch.look(agent, [first.pid], joining.PATIENCE_S)
    join_watch.look(agent, [first.pid, second.pid], joining.PATIENCE_S - 1)
    assert not mark.exists()
    for later in (0, 1):
        join_watch.look(agent, [first.pid, second.pid], joining.PATIENCE_S + later)
    assert mark.exists()
    assert capfd.readouterr().err.count("none of the 2 ranks has joined") == 1
    third = start(CONNECTS.format(port=first.said))

    def joined() -> bool:
        join_watch.look(agent, [first.pid, third.pid], joining.PATIENCE_S + 2)
        return join_watch.due == float("inf")

    until(joined, seconds=30, what="the connection")
    assert not mark.exists()


def test_a_single_rank_is_no_copy_and_an_older_launch_file_is_not_watched(tmp_path: Path, start: Start) -> None:
    alone = JoinWatch(launch(tmp_path, 1, 1), 0.0)
    alone.look(start(IDLES).pid, [start(IDLES).pid], joining.PATIENCE_S)
    assert not (tmp_path / "unjoined").exists()
    assert JoinWatch({"paths": {}}, 0.0).due == float("inf")
