"""Printed progress from a growing log to journal lines, under a worker that starts again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchyard.injob import layout
from worker.attempts.folder import AttemptFolder
from worker.trackers.printed import LOOK_S, READ, PrintedProgress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Job:
    """Prints to the log of its rank, and looks as the worker does."""

    def __init__(self, folder: AttemptFolder, **launch: Any) -> None:
        self.folder = folder
        self.log = folder.at(layout.LOGS) / launch.pop("log", "rank-0.log")
        self.clock = Clock()
        self.launch = launch
        self.start()

    def start(self) -> None:
        self.reader = PrintedProgress(self.folder, self.launch, self.clock)

    def prints(self, *lines: str) -> None:
        with self.log.open("a") as log:
            log.writelines(f"{line}\r" for line in lines)
        self.clock.now += LOOK_S
        self.reader.pump(ended=False)

    @property
    def told(self) -> list[tuple[str, int, float, int | None]]:
        path = self.folder.at(layout.TRACKERS) / "printed-rank-0.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [(name, line["step"], value, line.get("total")) for line in lines for name, value in line["v"].items()]


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Job]:
    folder = AttemptFolder(tmp_path / "attempts", "att-1")
    folder.create()
    folder.at(layout.LOGS).mkdir(parents=True, exist_ok=True)
    folder.at(layout.METRICS).mkdir(parents=True)
    return lambda **launch: Job(folder, **launch)


def bar(place: int, total: int = 200) -> str:
    return f" {100 * place // total}%|##   | {place}/{total} [00:01<00:02,  9.5it/s]"


def test_a_bar_becomes_steps_of_a_total(job: Callable[..., Job]) -> None:
    run = job()
    run.prints(bar(0), bar(10))
    run.prints(bar(20))
    run.prints(bar(50))
    assert run.told == [("progress", 20, 10.0, 200), ("progress", 50, 25.0, 200)]


def test_what_is_seen_once_is_not_told(job: Callable[..., Job]) -> None:
    run = job()
    run.prints(bar(10))
    assert run.told == []


def test_a_launcher_prints_to_its_own_log(job: Callable[..., Job]) -> None:
    run = job(log=layout.LAUNCHER_LOG)
    run.prints(bar(10))
    run.prints(bar(20))
    assert run.told == [("progress", 20, 10.0, 200)]


def test_the_second_node_tells_nothing(job: Callable[..., Job]) -> None:
    run = job(node_rank=1)
    run.prints(bar(10))
    run.prints(bar(20))
    assert run.told == []


def test_the_command_line_tells_the_epochs(job: Callable[..., Job]) -> None:
    run = job(argv=["train.py", "--epochs", "10"])
    run.prints("Train Epoch: 1 [0/600 (0%)]")
    run.prints("Train Epoch: 1 [300/600 (50%)]")
    assert run.told == [("progress", 300, 5.0, 6000)]


def test_a_counter_that_begins_again_is_taken_back(job: Callable[..., Job]) -> None:
    run = job()
    run.prints(bar(100))
    run.prints(bar(200))
    run.prints(bar(0), bar(50))
    run.prints(bar(60))
    assert run.told == [("progress", 200, 100.0, 200), ("progress", 200, "nan", None)]


def test_another_phase_is_another_series(job: Callable[..., Job]) -> None:
    run = job()
    run.prints(bar(10, 20))
    run.prints(bar(20, 20))
    run.prints("epoch 1/40")
    run.prints("epoch 3/40")
    assert run.told == [("progress", 20, 100.0, 20), ("progress/phase-2", 60, 7.5, 800)]


def test_a_worker_that_starts_again_goes_on(job: Callable[..., Job]) -> None:
    run = job()
    run.prints("epoch 1/10", bar(100))
    run.prints(bar(150))
    run.start()
    run.clock.now += LOOK_S
    run.reader.pump(ended=False)
    assert len(run.told) == 1
    run.prints("epoch 2/10", bar(0))
    run.prints(bar(50))
    assert run.told == [("progress", 150, 7.5, 2000), ("progress", 250, 12.5, 2000)]


def test_a_flood_is_skipped_to_its_end(job: Callable[..., Job]) -> None:
    run = job()
    run.prints(bar(10))
    run.prints(*["a line without any progress"] * (READ // 10), bar(20))
    assert run.told == [("progress", 20, 10.0, 200)]


def test_a_log_that_is_a_link_is_left_alone(job: Callable[..., Job], tmp_path: Path) -> None:
    run = job()
    (tmp_path / "other").write_text(bar(10) + "\r")
    run.log.symlink_to(tmp_path / "other")
    run.clock.now += LOOK_S
    run.reader.pump(ended=False)
    run.clock.now += LOOK_S
    run.reader.pump(ended=True)
    assert run.told == []


def test_the_end_is_told_at_once(job: Callable[..., Job]) -> None:
    run = job()
    run.prints(bar(10))
    run.prints(bar(20))
    with run.log.open("a") as log:
        log.write(bar(200) + "\n")
    run.reader.pump(ended=True)
    assert run.told[-1] == ("progress", 200, 100.0, 200)


def test_an_end_that_was_read_before_its_point_was_due_is_told(job: Callable[..., Job]) -> None:
    """In a long run points come seldom, and programs go on for a while after their last bar."""
    run = job()
    run.prints(bar(0), bar(10))
    run.clock.now = 600.0
    run.prints(bar(190))
    run.prints(bar(200))
    assert run.told[-1] == ("progress", 190, 95.0, 200)
    for _ in range(2):
        run.reader.pump(ended=True)
    assert run.told[-2:] == [("progress", 190, 95.0, 200), ("progress", 200, 100.0, 200)]
