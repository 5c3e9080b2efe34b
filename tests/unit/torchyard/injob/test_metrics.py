import errno
import math
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

import torchyard
from tests.support import attempt, disks
from tests.support.attempt import AttemptFolder
from torchyard.injob import metrics


def flush() -> None:
    assert metrics._recorder is not None
    metrics._recorder.flush()


def test_a_record_has_number_step_time_and_values(folder: AttemptFolder) -> None:
    torchyard.report(step=3, total_steps=10, loss=0.5, metrics={"val/accuracy": 1})
    flush()
    (record,) = folder.records()
    assert record.pop("t") > 1_700_000_000_000_000
    assert record == {"n": 0, "step": 3, "v": {"loss": 0.5, "val/accuracy": 1.0}, "total": 10}


def test_the_file_is_named_by_rank_and_process(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    torchyard.report(loss=1.0)
    flush()
    (file,) = (folder.root / "job/metrics").glob("*.jsonl")
    assert file.name.startswith(f"rank-3-{os.getpid()}-")
    assert file.with_suffix(".taken").exists()


def test_without_a_step_it_counts_on(folder: AttemptFolder) -> None:
    torchyard.report(loss=1.0)
    torchyard.report(step=7, loss=1.0)
    torchyard.report(loss=1.0)
    flush()
    assert [record["step"] for record in folder.records()] == [0, 7, 8]


def test_non_finite_values_travel_as_words(folder: AttemptFolder) -> None:
    torchyard.report(a=math.nan, b=math.inf, c=-math.inf)
    flush()
    assert folder.records()[0]["v"] == {"a": "nan", "b": "inf", "c": "-inf"}


def test_any_name_is_written_as_json(folder: AttemptFolder) -> None:
    names = ["val/accuracy", "loss [%]", 'a "quoted" name', "back\\slash", "\n", "精度", ""]
    torchyard.report(metrics=dict.fromkeys(names, 1e-300))
    flush()
    assert folder.records()[0]["v"] == dict.fromkeys(names, 1e-300)


def test_names_that_are_numbers_are_written_as_words(folder: AttemptFolder) -> None:
    """As of accuracies by class, whose records would else end the thread that writes."""
    torchyard.report(metrics={0: 0.5, 1: 0.25})  # type: ignore[dict-item]
    flush()
    assert folder.records()[0]["v"] == {"0": 0.5, "1": 0.25}


@pytest.mark.parametrize("total", [math.inf, math.nan, "many"])
def test_a_total_that_is_no_number_is_left_out(
    folder: AttemptFolder, capsys: pytest.CaptureFixture[str], total: float
) -> None:
    torchyard.report(step=3, total_steps=total, loss=0.5)  # type: ignore[arg-type]
    torchyard.report(step=4, total_steps=9, loss=0.5)
    flush()
    assert [(record["step"], record.get("total")) for record in folder.records()] == [(3, None), (4, 9)]
    assert "total_steps is not a number" in capsys.readouterr().err


def test_records_that_cannot_be_written_do_not_end_the_thread(
    folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(metrics, "_line", lambda *_: 1 / 0)
        torchyard.report(loss=1.0)
        flush()
    torchyard.report(loss=2.0)
    flush()
    assert [(record["n"], record["v"]) for record in folder.records()] == [(1, {"loss": 2.0})]
    assert "1 metrics are dropped: ZeroDivisionError" in capsys.readouterr().err


def test_what_is_not_a_number_is_left_out_and_said_once(
    folder: AttemptFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        torchyard.report(good=numpy.float32(0.5), bad="high", many=numpy.zeros(2))
    flush()
    assert [record["v"] for record in folder.records()] == [{"good": 0.5}, {"good": 0.5}]
    assert capsys.readouterr().err.count("bad is not a number (str)") == 1


def test_a_tensor_is_taken_now(folder: AttemptFolder) -> None:
    class Running:
        """A CPU scalar that the loop goes on adding to."""

        value = 1.0

        def item(self) -> float:
            return self.value

    running = Running()
    torchyard.report(step=0, loss=running)
    running.value = 2.0
    flush()
    assert folder.series("loss") == {0: 1.0}


def full_disk(after: int) -> Callable[[int, bytes], int]:
    """An `os.write` that writes so many bytes and then finds the disk full."""
    left = [after]
    write = os.write

    def fail(descriptor: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = data[: left[0]]
        left[0] -= len(part)
        return write(descriptor, part)

    return fail


def test_a_full_disk_drops_counts_and_goes_on(
    folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torchyard.report(step=0, loss=0.0)
    flush()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_disk(after=20))
        torchyard.report(step=1, loss=1.0)
        torchyard.report(step=2, loss=2.0)
        flush()
    torchyard.report(step=3, loss=3.0)
    flush()
    (file,) = (folder.root / "job/metrics").glob("*.jsonl")
    lines = file.read_text().splitlines()
    assert len(lines) == 3
    assert len(lines[1]) == 20  # torn, on a line of its own
    assert '"n":0' in lines[0]
    assert '"n":3' in lines[2]  # the gap counts what was dropped
    assert capsys.readouterr().err.count("No space left") == 1


def test_records_that_no_line_follows_are_counted_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with disks.small(tmp_path / "disk", 1) as disk:
        for folder in attempt.entered(AttemptFolder(disk / "attempt"), monkeypatch):
            torchyard.report(step=0, loss=0.0)
            flush()
            disks.fill(disk / "full")
            for step in range(1, 2001):
                torchyard.report(step=step, loss=1.0)
            flush()
            (lines,) = (folder.root / "job/metrics").glob("*.jsonl")
            assert 0 < len(lines.read_bytes().splitlines()) < 2001
            assert int(lines.with_suffix(".taken").read_text()) == 2001


def test_a_missing_folder_never_raises(folder: AttemptFolder) -> None:
    (folder.root / "job/metrics").rmdir()
    torchyard.report(loss=1.0)
    flush()
    assert not (folder.root / "job/metrics").exists()


def test_records_beyond_the_bound_are_dropped(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_WAITING", 2)
    monkeypatch.setattr(metrics, "FLUSH_SECONDS", 3600)
    for step in range(4):
        torchyard.report(step=step, loss=0.0)
    flush()
    assert [record["step"] for record in folder.records()] == [0, 1]


def test_what_is_dropped_is_counted_while_another_thread_writes(
    folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MAX_WAITING", 1)
    monkeypatch.setattr(metrics, "FLUSH_SECONDS", 3600)
    recorder = metrics.Recorder(str(folder.root / "job/metrics"))

    class Number(int):
        """A count that the other thread finds between its reading and its writing, if nothing holds it off."""

        def __add__(self, other: int) -> int:
            if not recorder._numbering.locked():
                recorder._next = int(self)
                thread = threading.Thread(target=recorder.flush)
                thread.start()
                thread.join()
            return int(self) + other

    recorder.add(0, None, {"loss": 0.0})
    recorder._next = Number(0)
    recorder.add(1, None, {"loss": 0.0})
    recorder.flush()
    assert recorder._next == 2
    recorder.close()


# The fork beside the flush thread is what is tested; Python 3.12 warns of it.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_writes_a_file_of_its_own(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "FLUSH_SECONDS", 3600)
    torchyard.report(step=0, who=1.0)
    flush()
    torchyard.report(step=1, who=1.0)
    child = os.fork()
    if child == 0:
        torchyard.report(step=2, who=2.0)
        flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    flush()
    assert sorted((record["v"]["who"], record["step"]) for record in folder.records()) == [
        (1.0, 0),
        (1.0, 1),
        (2.0, 2),
    ]
    assert len(list((folder.root / "job/metrics").glob("*.jsonl"))) == 2


def test_many_threads_lose_nothing(folder: AttemptFolder) -> None:
    def work(thread: int) -> None:
        for step in range(500):
            torchyard.report(step=step, metrics={f"t{thread}": step})

    torchyard.report(step=0, start=1)
    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    flush()
    records = folder.records()
    assert [record["n"] for record in records] == list(range(2001))
    assert all(len(folder.series(f"t{index}")) == 500 for index in range(4))


def test_off_the_queue_nothing_happens(off_the_queue: object) -> None:
    torchyard.report(step=1, loss=1.0)
    assert metrics._recorder is None
