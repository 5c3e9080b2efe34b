"""Trackers' files as they grow under a worker that is killed again and again, and a service that keeps its marks."""

import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import events
from torchyard import wire
from torchyard.injob import layout
from worker.attempts import files
from worker.attempts.folder import AttemptFolder
from worker.exceptions import UnavailableError
from worker.forward.trackers import TrackerForwarder
from worker.trackers import translate

RUN = "0123456789abcdef" * 2
Points = list[tuple[str, int, float]]


class Service:
    """Keeps marks and points as the service does."""

    def __init__(self) -> None:
        self.marks: dict[str, int] = {}
        self.points: dict[str, Points] = {}
        self.away = False

    def metrics(self, attempt: str, batch: wire.MetricBatch) -> int:
        if self.away:
            raise UnavailableError("away")
        mark = self.marks.setdefault(batch.stream, 0)
        assert batch.offset <= mark
        if batch.end > mark:
            assert batch.offset == mark
            self.marks[batch.stream] = batch.end
            stored = self.points.setdefault(batch.stream, [])
            stored += [
                (name, record.step, float(value))
                for _, record in batch.records
                for name, value in record.values.items()
            ]
        return self.marks[batch.stream]


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    folder = AttemptFolder(tmp_path / "attempts", "att-1")
    folder.create()
    for name in (layout.CODE, layout.METRICS, layout.MARKS, layout.CHECKPOINTS, layout.OUTPUT):
        folder.at(name).mkdir(parents=True)
    return folder


def launch(**changed: Any) -> dict[str, Any]:
    return {"trackers": ["tensorboard", "mlflow", "wandb", "trackio"], "cwd": "/", "env": {}, **changed}


@pytest.fixture
def start(folder: AttemptFolder) -> Callable[..., tuple[TrackerForwarder, Service]]:
    """Starts a worker on the folder, for a service that knows what an earlier one has sent."""

    def start(service: Service | None = None, **changed: Any) -> tuple[TrackerForwarder, Service]:
        record = launch(**changed)
        if not folder.at(layout.TRACKERS).exists():
            translate.prepare(folder, record, os.getuid())
        sink = service or Service()
        return TrackerForwarder(sink, folder, record, owner=os.getuid(), fresh=service is None), sink

    return start


def drain(forwarder: TrackerForwarder, *, ended: bool = True) -> None:
    while forwarder.pump(ended=ended):
        pass


def event_file(folder: AttemptFolder, inside: str, number: int = 0, pid: int = 5, host: str = "box") -> Path:
    place = folder.at(layout.CODE) / inside
    place.mkdir(parents=True, exist_ok=True)
    return place / f"events.out.tfevents.{1700000000 + number}.{host}.{pid}.{number}"


def scalars(tag: str, steps: range) -> bytes:
    return events.file([events.scalar(tag, float(step), step) for step in steps])


def expected(*tags: tuple[str, range]) -> Points:
    return [(tag, step, float(step)) for tag, steps in tags for step in steps]


def test_names_are_those_of_the_first_run_and_others_carry_theirs(
    folder: AttemptFolder, start: Callable[..., tuple[TrackerForwarder, Service]]
) -> None:
    worker, service = start()
    event_file(folder, "runs/exp/train", 0).write_bytes(scalars("loss", range(3)))
    event_file(folder, "runs/exp/val", 1).write_bytes(scalars("loss", range(2)))
    event_file(folder, "runs/exp/train/deep", 2).write_bytes(scalars("loss", range(1)))
    event_file(folder, "runs/exp/train", 3).write_bytes(scalars("loss", range(3, 4)))
    drain(worker)
    assert sorted(service.points["tensorboard-rank-0.jsonl"]) == sorted(
        expected(("loss", range(4)), ("val/loss", range(2)), ("deep/loss", range(1)))
    )


def test_what_was_there_before_is_not_read_again(
    folder: AttemptFolder, start: Callable[..., tuple[TrackerForwarder, Service]]
) -> None:
    old = event_file(folder, "runs")
    old.write_bytes(scalars("loss", range(3)))
    metric = folder.at(layout.MLFLOW_STORE) / "0" / RUN / "metrics" / "loss"
    metric.parent.mkdir(parents=True)
    metric.write_text("1 1.0 1\n")
    worker, service = start()
    drain(worker)
    assert service.points == {}
    event_file(folder, "runs", 1).write_bytes(scalars("loss", range(3, 5)))
    with metric.open("a") as file:
        file.write("2 2.0 2\n")
    again, _ = start(service)
    drain(again)
    assert service.points == {
        "tensorboard-rank-0.jsonl": expected(("loss", range(3, 5))),
        "mlflow-rank-0.jsonl": [("loss", 2, 2.0)],
    }
    assert again.runs == {"tensorboard": ["runs"], "mlflow": [RUN]}


def test_an_attempt_whose_trackers_are_not_read_sends_nothing(
    folder: AttemptFolder, start: Callable[..., tuple[TrackerForwarder, Service]]
) -> None:
    worker, service = start(trackers=[])
    event_file(folder, "runs").write_bytes(scalars("loss", range(3)))
    drain(worker)
    assert (service.points, worker.runs) == ({}, None)


def test_of_several_trackers_only_the_chosen_ones_are_read(
    folder: AttemptFolder, start: Callable[..., tuple[TrackerForwarder, Service]]
) -> None:
    worker, service = start(trackers=["mlflow"])
    event_file(folder, "runs").write_bytes(scalars("loss", range(3)))
    drain(worker)
    assert service.points == {}


def test_links_and_what_is_ours_are_left_alone(
    folder: AttemptFolder, start: Callable[..., tuple[TrackerForwarder, Service]], tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere" / "events.out.tfevents.1700000000.box.5.0"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(scalars("secret", range(3)))
    worker, service = start()
    event_file(folder, "runs").symlink_to(elsewhere)
    (folder.at(layout.CODE) / "linked").symlink_to(elsewhere.parent)
    shutil.copy(elsewhere, folder.at(layout.CHECKPOINTS))
    drain(worker)
    assert service.points == {}


def test_a_worker_killed_anywhere_loses_and_doubles_nothing(
    folder: AttemptFolder, start: Callable[..., tuple[TrackerForwarder, Service]]
) -> None:
    chance = random.Random(11)
    train, val = scalars("loss", range(300)), scalars("loss", range(100))
    lines = "".join(f"{step} {float(step)} {step}\n" for step in range(200)).encode()
    metric = folder.at(layout.MLFLOW_STORE) / "0" / RUN / "metrics" / "acc"
    growing = [(event_file(folder, "runs/a", 0), train), (event_file(folder, "runs/b", 1), val), (metric, lines)]
    worker, service = start()
    metric.parent.mkdir(parents=True)
    sizes = [0, 0, 0]
    while any(size < len(data) for size, (_, data) in zip(sizes, growing, strict=True)):
        for place, (path, data) in enumerate(growing):
            more = min(len(data), sizes[place] + chance.randrange(700))
            with path.open("ab") as file:
                file.write(data[sizes[place] : more])
            sizes[place] = more
        service.away = chance.random() < 0.4
        with contextlib.suppress(UnavailableError):
            worker.pump(ended=False)
        if chance.random() < 0.5:
            tear(folder, service, chance)
            worker, _ = start(service)
    service.away = False
    worker, _ = start(service)
    drain(worker)
    found = service.points["tensorboard-rank-0.jsonl"]
    assert [point for point in found if point[0] == "loss"] == expected(("loss", range(300)))
    assert [point for point in found if point[0] != "loss"] == expected(("b/loss", range(100)))
    assert service.points["mlflow-rank-0.jsonl"] == expected(("acc", range(200)))


def tear(folder: AttemptFolder, service: Service, chance: random.Random) -> None:
    """As if the worker had been killed while it wrote what it has not sent yet."""
    for path in folder.at(layout.TRACKERS).glob("*.jsonl"):
        sent = service.marks.get(path.name, 0)
        os.truncate(path, chance.randrange(sent, path.stat().st_size + 1))


def test_each_rank_has_its_own_curves(
    folder: AttemptFolder, start: Callable[..., tuple[TrackerForwarder, Service]]
) -> None:
    worker, service = start(local_world_size=2)
    for rank, pid in ((0, 40_001), (1, 40_002)):
        (folder.at(layout.MARKS) / f"pid-{rank}").write_text(str(pid))
        event_file(folder, "runs", rank, pid=pid).write_bytes(scalars("loss", range(rank + 2)))
    drain(worker)
    assert service.points == {
        "tensorboard-rank-0.jsonl": expected(("loss", range(2))),
        "tensorboard-rank-1.jsonl": expected(("loss", range(3))),
    }


@pytest.fixture
def process(folder: AttemptFolder) -> Iterator[int]:
    """A process of the attempt; its id."""
    environment = {layout.ATTEMPT_ID: folder.attempt_id, "RANK": "0"}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment) as process:
        yield process.pid
        process.kill()


def test_in_a_folder_of_several_jobs_only_its_own_processes_count(
    folder: AttemptFolder, start: Callable[..., tuple[TrackerForwarder, Service]], tmp_path: Path, process: int
) -> None:
    live = tmp_path / "project"
    for number, (pid, host) in enumerate([(process, socket.gethostname()), (1, socket.gethostname()), (process, "x")]):
        place = live / f"runs/{number}"
        place.mkdir(parents=True)
        name = f"events.out.tfevents.1700000000.{host}.{pid}.0"
        (place / name).write_bytes(scalars(f"of {number}", range(2)))
    worker, service = start(live=str(live))
    drain(worker)
    assert service.points == {"tensorboard-rank-0.jsonl": expected(("of 0", range(2)))}


def test_an_old_file_of_a_process_with_the_same_number_is_not_read(
    folder: AttemptFolder, start: Callable[..., tuple[TrackerForwarder, Service]], tmp_path: Path, process: int
) -> None:
    shim = {"pid": 1, "start_ticks": 1, "boot_id": "b", "child_pid": process, "started_us": 1_800_000_000_000_000}
    files.write_whole(folder.at(layout.SHIM), json.dumps(shim).encode())
    live = tmp_path / "project"
    live.mkdir()
    name = f"events.out.tfevents.1700000000.{socket.gethostname()}.{process}.0"
    (live / name).write_bytes(scalars("old", range(2)))
    worker, service = start(live=str(live))
    drain(worker)
    assert service.points == {}


def test_names_that_no_database_holds_are_counted(
    folder: AttemptFolder, start: Callable[..., tuple[TrackerForwarder, Service]]
) -> None:
    worker, service = start()
    steps = [events.scalar("x" * 256, 1.0, 1), events.scalar("a\x1b[2J", 1.0, 1), events.scalar("ok", 1.0, 1)]
    event_file(folder, "runs").write_bytes(events.file(steps))
    drain(worker)
    assert service.points == {"tensorboard-rank-0.jsonl": [("ok", 1, 1.0)]}
    assert worker.skipped == 2


def test_a_full_disk_delays_points_and_loses_none(
    folder: AttemptFolder, start: Callable[..., tuple[TrackerForwarder, Service]], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, service = start()
    event_file(folder, "runs").write_bytes(scalars("loss", range(50)))

    def full(descriptor: int, data: bytes) -> int:
        if len(data) > 100:
            return real(descriptor, data[:100])
        raise OSError(28, "No space left on device")

    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr("worker.trackers.journal.os.write", full)
        with pytest.raises(OSError, match="No space"):
            worker.pump(ended=True)
    drain(worker)
    assert service.points == {"tensorboard-rank-0.jsonl": expected(("loss", range(50)))}
