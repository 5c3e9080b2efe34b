"""One queue is measured for real: Celery on a Redis, the cheapest of them."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from benchmarks.peers import __main__ as main
from benchmarks.peers import measure, processes, programs
from benchmarks.peers.interface import Client, Peer
from benchmarks.peers.outcome import Measured
from benchmarks.peers.queues import celery_alone


def test_celery_is_measured_and_leaves_nothing() -> None:
    into = Measured(name="celery")
    with tempfile.TemporaryDirectory(prefix="ty-peer-", dir="/tmp") as name:
        with celery_alone.PEER.start(Path(name)) as client:
            measure.warm_up(client, Path(name))
            measure.latency(client, Path(name), into, 3)
            into.drain_per_s.append(measure.drain(client, Path(name), 6))
        assert not [each for each in psutil.process_iter(["cmdline"]) if name in " ".join(each.info["cmdline"] or [])]
    assert len(into.submit_ms) == len(into.start_ms) == 3
    assert min(into.submit_ms + into.start_ms) > 0  # on a busy machine a job may start before its submission returns
    assert into.drain_per_s[0] > 0


class Deaf:
    """A queue that accepts everything and runs nothing."""

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        return "1"

    def wait(self, job: str) -> None: ...


def test_a_queue_that_runs_nothing_is_a_row_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "JOB_S", 0.1)

    @contextmanager
    def start(_: Path) -> Iterator[Client]:
        yield Deaf()

    into = Measured(name="deaf")
    main.one_round(Peer(name="deaf", install=str, start=start), into)
    assert into.reason == "failed: a job has not run after 0.1 s"
    assert not into.start_ms


def test_a_daemon_that_leaves_its_parent_is_ended(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    with processes.started(tmp_path) as started:
        started.run(["sh", "-c", f"setsid sh -c 'echo $$ > {told}; exec sleep 600' > /dev/null 2>&1 &"])
        measure.until(told.exists)
        measure.until(told.read_text)
        pid = int(told.read_text())
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_clock_tells_when_it_ran(tmp_path: Path) -> None:
    with processes.started(tmp_path) as started:
        started.run(programs.clock(tmp_path / "now"))
    assert programs.seconds(tmp_path / "now") > 1_700_000_000
