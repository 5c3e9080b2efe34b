import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.resources import job
from torchyard.api import Attempt, HeldDevice, JobError, Member, Node, Progress, ProgressSource
from torchyard.cli import format as shown
from torchyard.wire import DeviceKind, LinkLevel, Topology

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([1.0], "▁"),
        ([0.0, 1.0], "▁█"),
        ([3.0, "nan", 1.0], "█ ▁"),
        (["nan", "inf"], "  "),
        ([5.0, 5.0], "▁▁"),
    ],
)
def test_curves(values: list[float], line: str) -> None:
    assert shown.sparkline(values) == line


def test_a_long_curve_is_squeezed() -> None:
    line = shown.sparkline([float(n) for n in range(1000)], width=8)
    assert line == "▁▂▃▄▅▆▇█"


@pytest.mark.parametrize(
    ("value", "text"), [(0.123456, "0.1235"), (3.0, "3"), ("nan", "nan"), (1e-7, "1e-07"), (1234567.0, "1.235e+06")]
)
def test_numbers(value: float, text: str) -> None:
    assert shown.number(value) == text


def test_ranks_of_several_nodes() -> None:
    members = [
        Member(node=node, node_rank=number, first_rank=first, last_rank=last, ended_at=None)
        for number, (node, first, last) in enumerate((("box", 0, 1), ("far", 2, 2)))
    ]
    assert shown.ranks(members) == "0-1 on box, 2 on far"
    assert shown.ranks(members[:1]) == ""


def test_time_counts_from_the_start_or_from_the_submission() -> None:
    waiting = job(created_at=AT)
    assert shown.elapsed(waiting, AT + timedelta(seconds=90)) == "1m30s"
    ended = job(created_at=AT, started_at=AT + timedelta(seconds=60), ended_at=AT + timedelta(seconds=9000), ran_s=3660)
    assert shown.elapsed(ended, AT + timedelta(days=9)) == "1h1m"


def test_progress_names_steps_share_and_rest() -> None:
    assert shown.progress(job()) == ""
    assert shown.progress(job(progress=Progress(step=1200, total_steps=None, eta_s=None))) == "step 1,200"
    assert shown.progress(job(progress=Progress(step=50, total_steps=200, eta_s=60.0))) == "50/200 (25%) 1m left"
    assert shown.progress(job(progress=Progress(step=19, total_steps=2, eta_s=0.0))) == "step 19"
    printed = Progress(source=ProgressSource.PRINTED, step=50, total_steps=200, eta_s=None)
    assert shown.progress(job(progress=printed), source=True) == "50/200 (25%), as printed"


@pytest.mark.parametrize(
    ("tail", "shown_as"),
    [
        ("Traceback (most recent call last):\n  f(7)\nIndexError: 7\n", "IndexError: 7"),
        ("alloc\n", "exited"),
        (None, "exited"),
    ],
)
def test_a_failure_is_told_by_its_exception(tail: str | None, shown_as: str) -> None:
    failed = job(error=JobError(cause="exit", message="exited", traceback=tail))
    assert str(shown.status(failed)) == shown_as


def test_devices_are_grouped_by_node() -> None:
    held = [
        HeldDevice(node=node, uuid=f"{node}{n}", index=n, kind=DeviceKind.GPU) for node in ("a", "b") for n in (0, 1)
    ]
    assert shown.devices(held) == "a:0,1 b:0,1"


def test_a_held_job_says_so() -> None:
    assert [(str(text), text.style) for text in (shown.state(job(held=True)), shown.state(job()))] == [
        ("held", "yellow"),
        ("queued", "yellow"),
    ]


def test_links_of_a_gpu_the_fastest_first() -> None:
    links = {"b": LinkLevel.NVLINK, "d": LinkLevel.SYS, "c": LinkLevel.NVLINK, "gone": LinkLevel.PIX}
    node = api_node(
        [
            {"uuid": "a", "index": 0, "topology": Topology(numa=1, links=links)},
            *({"uuid": uuid, "index": index} for index, uuid in enumerate("bcd", start=1)),
        ]
    )
    assert shown.links(node.devices[0], node) == "nvlink 1,2 sys 3 (numa 1)"
    assert shown.links(node.devices[1], node) == ""


@pytest.mark.parametrize(
    ("peaks", "asked", "words"),
    [
        ([], None, ""),
        ([None], 40 << 30, "40.0 GiB"),
        ([3 << 30, None, 11 << 30], 40 << 30, "peak 11.0 GiB of 40.0 GiB"),
        ([11 << 30], None, "peak 11.0 GiB"),
    ],
)
def test_the_memory_of_a_job(peaks: list[int | None], asked: int | None, words: str) -> None:
    assert shown.memory([Attempt.model_construct(memory_peak=peak) for peak in peaks], asked) == words


def test_the_gpu_memory_of_a_job_is_told_beside_what_it_asked_for() -> None:
    attempts = [Attempt.model_construct(gpu_memory_peak=peak) for peak in (None, 11 << 30)]
    assert shown.gpu_memory(attempts, {"gpu_share": 40 << 30}) == "peak 11.0 GiB of 40.0 GiB"
    assert shown.gpu_memory(attempts, {"gpu_memory_min": 20 << 30}) == "peak 11.0 GiB of 20.0 GiB"
    assert shown.gpu_memory(attempts, {}) == "peak 11.0 GiB"
    assert shown.gpu_memory([], {"gpu_memory_min": 0}) == ""


def test_limits_that_a_node_enforces() -> None:
    node = api_node([])
    assert shown.enforced(node) == "no limits by its kernel"
    assert shown.enforced(node.model_copy(update={"enforced": ["memory", "cpus"]})) == "limits memory, cpus"
    why = node.model_copy(update={"unenforced": "the worker is not root"})
    assert shown.enforced(why) == "no limits by its kernel: the worker is not root"
    some = why.model_copy(update={"enforced": ["network"]})
    assert shown.enforced(some) == "no limits by its kernel, but network: the worker is not root"


def api_node(devices: list[dict[str, Any]]) -> Node:
    """A node of which only the devices matter."""
    about = {"kind": "gpu", "name": "H200", "memory": 1, "unusable": None, "job": None, "job_number": None}
    empty = {"job_name": None, "user": None, "utilization": None, "memory_used": None}
    return Node.model_validate(
        {
            "name": "box",
            "state": "online",
            "hostname": "box",
            "version": "0",
            "last_seen_at": None,
            "cpus": 1,
            "memory": 1,
            "disk_free": 1,
            "latest": {},
            "devices": [about | empty | device for device in devices],
        }
    )


def test_times_in_a_sentence_are_on_the_local_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        told = shown.message("kept until 2026-11-25 22:15 UTC, seen 2026-11-25 22:15:09 UTC; not 2026-13-25 22:15 UTC")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert told == "kept until 2026-11-26 03:45, seen 2026-11-26 03:45:09; not 2026-13-25 22:15 UTC"


@pytest.mark.parametrize(("count", "told"), [(0, "0 files"), (1, "1 file"), (1200, "1,200 files")])
def test_one_is_told_as_one(count: int, told: str) -> None:
    assert shown.counted(count, "file", "files") == told
