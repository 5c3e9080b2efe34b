"""Reasons in words, and the forecast that time limits allow."""

from typing import Any

import pytest
from hypothesis import given

from service.scheduler.boxes import Box, Closed, Running, Shape, Slot, Waiting
from service.scheduler.explain import Scene, Title, reasons
from service.scheduler.forecast import latest_start
from service.scheduler.former import decide
from tests.unit.service.scheduler.test_former import GIB, box, clusters, job, jobs, slot

TITLES = {f"j{n}": Title(number=n, user="ada") for n in range(1, 30)} | {"held": Title(number=99, user="bob")}
MINUTE = 60_000_000


def codes(waiting: Waiting, queue: list[Waiting], boxes: list[Box]) -> list[str]:
    return [reason.code for reason in reasons(waiting, Scene(queue, boxes, TITLES, 0))]


def message(waiting: Waiting, queue: list[Waiting], boxes: list[Box]) -> str:
    return reasons(waiting, Scene(queue, boxes, TITLES, 0))[0].message


def test_the_jobs_own_reasons_come_first() -> None:
    held, saving, alone = job(1, held=True), job(1, saving=True), job(1)
    assert codes(held, [held], [box()]) == ["held"]
    assert codes(saving, [saving], [box()]) == ["saving"]
    assert codes(alone, [alone], []) == ["no-nodes"]
    big = job(1, gpus=9)
    assert message(big, [big], [box()]) == "node a has 4 GPUs, the job needs 9"


def test_who_holds_the_gpus() -> None:
    waiting = job(1, gpus=2)
    boxes = [box(gpus=2, held=(0,))]
    found = reasons(waiting, Scene([waiting], boxes, TITLES, 0))
    assert found[0].message == "node a has 1 of 2 GPUs free; the rest is held by job 99 (bob)"
    assert found[0].jobs == ["held"]


def test_gpus_of_a_size() -> None:
    waiting = job(1, gpus=1, gpu_memory_min=40 * GIB)
    slots = (slot(0), slot(1, memory=16 * GIB))
    boxes = [box(slots=slots, running=(Running(job="held", shape=Shape(gpus=1), uuids=("a0",)),))]
    assert "0 of 1 GPUs with at least 40.0 GiB free" in message(waiting, [waiting], boxes)


def test_cores_and_memory() -> None:
    holder = Running(job="held", shape=Shape(gpus=0, cpus=30, memory=200 * GIB), uuids=())
    for waiting, words in (
        (job(1, cpus=4), "2 of 4 CPU cores free; the rest is held by job 99 (bob)"),
        (job(1, memory=100 * GIB), "56.0 GiB of 100.0 GiB memory free"),
    ):
        assert words in message(waiting, [waiting], [box(running=(holder,))])


def test_closed_nodes_and_unusable_gpus() -> None:
    waiting = job(1, gpus=2)
    broken = (slot(0, unusable="owned by another stack"), slot(1))
    boxes = [
        box("a", closed=Closed.UNREACHABLE),
        box("b", closed=Closed.DISK_FLOOR),
        box("c", closed=Closed.DRAINING),
        box("d", slots=broken),
    ]
    assert codes(waiting, [waiting], boxes) == ["unusable", "disk-floor", "draining", "unreachable"]
    assert message(waiting, [waiting], boxes) == "node d: GPU 0 cannot be used (owned by another stack)"


def test_what_is_kept_for_a_job_before_it() -> None:
    first, second = job(1, gpus=4), job(2)
    found = reasons(second, Scene([first, second], [box(held=(0,))], TITLES, 0))
    assert (found[0].code, found[0].jobs) == ("behind", ["j1"])
    assert "job 1 (ada)" in found[0].message


def test_several_nodes_at_the_same_time() -> None:
    waiting = job(1, gpus=2, nodes=2)
    boxes = [box("a", gpus=2, held=(0,)), box("b", gpus=2)]
    found = reasons(waiting, Scene([waiting], [boxes[0], boxes[1]], TITLES, 0))
    assert [reason.code for reason in found] == ["nodes", "gpus"]
    assert found[0].message == "needs 2 nodes at the same time, with room now: b"
    assert codes(waiting, [job(0, gpus=2), waiting], [box("a", gpus=2), box("b", gpus=2)]) == ["behind"]


def test_a_job_that_starts_in_a_moment() -> None:
    waiting = job(1)
    assert codes(waiting, [waiting], [box()]) == ["starting"]


def test_long_lists_of_holders_are_cut() -> None:
    running = tuple(Running(job=f"j{n}", shape=Shape(gpus=1), uuids=(f"a{n}",)) for n in range(1, 9))
    boxes = [box(gpus=9, running=running)]
    waiting = job(20, gpus=9)
    assert "job 5 (ada) and 3 more" in message(waiting, [waiting], boxes)


def test_places_count_the_whole_queue() -> None:
    queue = [job(2), job(1), job(3, priority=2)]
    scene = Scene(queue, [], TITLES, 0)
    assert [scene.place(name) for name in ("j3", "j1", "j2", "j9")] == [1, 2, 3, None]


@given(jobs, clusters())
def test_every_waiting_job_has_a_reason_that_agrees_with_the_policy(queue: list[Waiting], boxes: list[Box]) -> None:
    scene = Scene(queue, boxes, TITLES, 0)
    starting = {start.job for start in decide(queue, boxes, 0)}
    for waiting in queue:
        found = reasons(waiting, scene)
        assert found
        assert (found[0].code == "starting") == (waiting.job in starting)


def holding(gpus: int, ends_us: int | None, name: str = "held", first: int = 0) -> Running:
    uuids = tuple(f"a{n}" for n in range(first, first + gpus))
    return Running(job=name, shape=Shape(gpus=gpus), uuids=uuids, ends_us=ends_us)


@pytest.mark.parametrize(
    ("running", "queue", "expected"),
    [
        ((), [job(1)], 0),
        ((holding(4, 5 * MINUTE),), [job(1)], 5 * MINUTE),
        ((holding(4, None),), [job(1)], None),
        ((holding(2, 5 * MINUTE), holding(2, None, "other", 2)), [job(1, gpus=2)], 5 * MINUTE),
        ((holding(2, 5 * MINUTE), holding(2, None, "other", 2)), [job(1, gpus=3)], None),
        ((holding(4, 5 * MINUTE),), [job(0, gpus=4, limit_us=MINUTE), job(1)], 6 * MINUTE),
        ((holding(4, 5 * MINUTE),), [job(0, gpus=4), job(1)], None),
        ((holding(4, 5 * MINUTE),), [job(1), job(2, gpus=4, priority=0)], 5 * MINUTE),
        ((), [job(1, held=True)], None),
    ],
)
def test_the_latest_start(running: Any, queue: list[Waiting], expected: int | None) -> None:
    assert latest_start("j1", queue, [box(running=running)], 0) == expected


def test_slots_of_a_cpu_node_are_called_slots() -> None:
    slots = (Slot(uuid="a0", index=0, memory=0, kind="cpu"),)
    waiting = job(1, gpus=2)
    assert message(waiting, [waiting], [box(slots=slots)]) == "node a has 1 slots, the job needs 2"
