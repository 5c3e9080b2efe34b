"""The policy by example and by property."""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from service.scheduler.boxes import Box, Closed, Free, Running, Shape, Slot, Waiting
from service.scheduler.former import Start, adjacent, decide, never_fits, order

GIB = 2**30


def slot(index: int, node: str = "a", memory: int = 80 * GIB, unusable: str | None = None) -> Slot:
    return Slot(uuid=f"{node}{index}", index=index, memory=memory, unusable=unusable)


def box(node: str = "a", gpus: int = 4, held: tuple[int, ...] = (), **fields: Any) -> Box:
    running = (Running(job="held", shape=Shape(gpus=len(held)), uuids=tuple(f"{node}{i}" for i in held)),)
    defaults: dict[str, Any] = {
        "slots": tuple(slot(i, node) for i in range(gpus)),
        "cpus": 32,
        "memory": 256 * GIB,
        "running": running if held else (),
    }
    return Box(node=node, **(defaults | fields))


def job(number: int, gpus: int = 1, priority: int = 1, **fields: Any) -> Waiting:
    shape = {key: fields.pop(key) for key in ("gpu_memory_min", "cpus", "memory") if key in fields}
    return Waiting(job=f"j{number}", number=number, priority=priority, shape=Shape(gpus=gpus, **shape), **fields)


def started(queue: list[Waiting], boxes: list[Box]) -> dict[str, tuple[str, ...]]:
    return {start.job: tuple(u for place in start.places for u in place.uuids) for start in decide(queue, boxes, 0)}


def test_first_come_first_served_within_a_priority() -> None:
    queue = [job(3), job(1), job(2, priority=0), job(4, priority=2)]
    assert list(started(queue, [box(gpus=2)])) == ["j4", "j1"]


def test_held_and_saving_jobs_are_passed_over() -> None:
    assert list(started([job(1, held=True), job(2, saving=True), job(3)], [box()])) == ["j3"]


def test_neighbouring_gpus_of_the_fullest_node_that_fits() -> None:
    boxes = [box("a", gpus=8), box("b", gpus=8, held=(1, 4, 5)), box("c", gpus=4, held=(0, 1, 2))]
    assert started([job(1, gpus=2)], boxes) == {"j1": ("b2", "b3")}
    assert started([job(1)], boxes) == {"j1": ("c3",)}


def test_a_big_job_is_not_overtaken_on_the_node_kept_for_it() -> None:
    boxes = [box("a", gpus=4, held=(0,))]
    assert started([job(1, gpus=4), job(2), job(3)], boxes) == {}


def test_those_behind_a_blocked_job_use_other_nodes() -> None:
    boxes = [box("a", gpus=4, held=(0,)), box("b", gpus=2)]
    assert started([job(1, gpus=4), job(2), job(3, gpus=2)], boxes) == {"j2": ("b0",)}


def test_those_behind_a_blocked_job_use_gpus_it_cannot_use() -> None:
    mixed = (slot(0), slot(1), slot(2, memory=16 * GIB))
    boxes = [box(slots=mixed, running=(Running(job="h", shape=Shape(gpus=1), uuids=("a0",)),))]
    queue = [job(1, gpus=2, gpu_memory_min=40 * GIB), job(2), job(3)]
    assert started(queue, boxes) == {"j2": ("a2",)}


def test_a_blocked_job_keeps_cores_and_memory_too() -> None:
    boxes = [box(gpus=1, held=(0,), cpus=8)]
    queue = [job(1, gpus=1, cpus=6), job(2, gpus=0, cpus=3), job(3, gpus=0, cpus=2), job(4, gpus=0, cpus=1)]
    assert started(queue, boxes) == {"j3": ()}


def test_jobs_without_gpus_run_beside_them_as_far_as_cores_go() -> None:
    boxes = [box("a", gpus=1, held=(0,), cpus=2), box("b", gpus=1, held=(0,), cpus=1)]
    queue = [job(number, gpus=0, cpus=1) for number in range(1, 6)]
    assert Counter(start.places[0].node for start in decide(queue, boxes, 0)) == {"a": 2, "b": 1}


def test_cores_memory_and_gpu_memory_bound_a_start() -> None:
    boxes = [box(cpus=4, memory=16 * GIB)]
    for big in (
        job(1, cpus=5),
        job(1, memory=17 * GIB),
        job(1, gpu_memory_min=81 * GIB),
        job(1, gpus=5),
    ):
        assert started([big], boxes) == {}


def test_closed_nodes_and_unusable_gpus_take_nothing() -> None:
    for closed in Closed:
        assert started([job(1)], [box(closed=closed)]) == {}
    slots = (slot(0, unusable="stuck"), slot(1))
    assert started([job(1), job(2)], [box(slots=slots)]) == {"j1": ("a1",)}


def test_what_never_fits_says_why_for_each_node() -> None:
    boxes = [box("a", gpus=2), box("b", gpus=8, cpus=4, closed=Closed.DRAINING)]
    assert never_fits(Shape(gpus=8), boxes) == []
    assert never_fits(Shape(gpus=8, cpus=6), boxes) == [
        "node a has 2 GPUs, the job needs 8",
        "node b has 4 CPU cores, the job needs 6",
    ]
    assert never_fits(Shape(gpus=1, gpu_memory_min=100 * GIB), boxes)[0] == (
        "node a has 0 GPUs with at least 100.0 GiB, the job needs 1"
    )
    assert never_fits(Shape(gpus=1, memory=512 * GIB), boxes[:1]) == [
        "node a has 256.0 GiB of memory, the job needs 512.0 GiB"
    ]
    assert never_fits(Shape(gpus=8), []) == []


def cpu_box(node: str, slots: int) -> Box:
    return box(node, slots=tuple(Slot(uuid=f"{node}{i}", index=i, memory=0, kind="cpu") for i in range(slots)))


def test_several_nodes_start_at_once_or_not_at_all() -> None:
    boxes = [box("a", held=(0, 1, 2)), box("b", held=(3,)), box("c", gpus=2)]
    assert started([job(1, gpus=2, nodes=2)], boxes) == {"j1": ("c0", "c1", "b0", "b1")}
    assert started([job(1, gpus=2, nodes=3)], boxes) == {}


def test_no_job_is_split_that_does_not_say_so() -> None:
    assert started([job(1, gpus=4)], [box("a", gpus=2), box("b", gpus=2)]) == {}


def test_ranks_on_gpus_and_ranks_on_cpus_are_not_mixed() -> None:
    boxes = [box("a", gpus=2), cpu_box("b", 2), cpu_box("c", 4)]
    assert started([job(1, gpus=2, nodes=2)], boxes) == {"j1": ("b0", "b1", "c0", "c1")}
    assert started([job(1, gpus=0, nodes=3)], boxes) == {"j1": ()}
    assert never_fits(Shape(gpus=2), boxes, 3) == [
        "the job needs 3 nodes of one sort, and only 1 with GPUs and 2 with slots could hold a part of it"
    ]


def test_as_many_nodes_as_it_needs_are_kept_for_a_blocked_job() -> None:
    boxes = [box("a", held=(0,)), box("b"), box("c", gpus=2)]
    assert started([job(1, gpus=4, nodes=2), job(2), job(3)], boxes) == {"j2": ("c0",), "j3": ("c1",)}


def test_too_few_nodes_never_fit() -> None:
    boxes = [box("a"), box("b", gpus=1)]
    assert never_fits(Shape(gpus=2), boxes, 2) == [
        "the job needs 2 nodes of one sort, and only 1 could hold a part of it",
        "node b has 1 GPUs, the job needs 2",
    ]


def test_adjacent_takes_the_tightest_window() -> None:
    slots = [slot(i) for i in (7, 0, 3, 4, 6)]
    assert [s.index for s in adjacent(slots, 2)] == [3, 4]
    assert [s.index for s in adjacent(slots, 3)] == [3, 4, 6] or [s.index for s in adjacent(slots, 3)] == [4, 6, 7]
    assert adjacent(slots, 0) == []


shapes = st.builds(
    Shape,
    gpus=st.integers(0, 5),
    gpu_memory_min=st.sampled_from([0, 20, 80]),
    cpus=st.integers(0, 6),
    memory=st.integers(0, 6),
)
rows = st.tuples(shapes, st.sampled_from([1, 1, 1, 2, 3]), st.integers(0, 3), st.sampled_from(["", "", "", "h", "s"]))


def waiting_job(number: int, row: tuple[Shape, int, int, str]) -> Waiting:
    shape, nodes, priority, mark = row
    marks = {"held": mark == "h", "saving": mark == "s"}
    return Waiting(job=f"j{number}", number=number, priority=priority, shape=shape, nodes=nodes, **marks)


jobs = st.lists(rows, max_size=20).map(lambda found: [waiting_job(n, row) for n, row in enumerate(found)])


@st.composite
def clusters(draw: st.DrawFn) -> list[Box]:
    boxes = []
    for node in "abc"[: draw(st.integers(0, 3))]:
        count = draw(st.integers(0, 6))
        kind = draw(st.sampled_from(["gpu", "gpu", "cpu"]))
        slots = tuple(
            replace(
                slot(i, node, draw(st.sampled_from([16, 40, 80])), draw(st.sampled_from([None, None, "stuck"]))),
                kind=kind,
            )
            for i in range(count)
        )
        held = [s.uuid for s in slots if draw(st.booleans())]
        running = [
            Running(job=f"r-{uuid}", shape=Shape(gpus=1, cpus=draw(st.integers(0, 2))), uuids=(uuid,)) for uuid in held
        ]
        boxes.append(
            Box(
                node=node,
                slots=slots,
                cpus=draw(st.integers(0, 12)),
                memory=draw(st.integers(0, 12)),
                running=tuple(running),
                closed=draw(st.sampled_from([None, None, None, *Closed])),
            )
        )
    return boxes


def apply(starts: list[Start], queue: list[Waiting], boxes: list[Box]) -> list[Box]:
    shapes_of = {waiting.job: waiting.shape for waiting in queue}
    return [
        Box(
            node=b.node,
            slots=b.slots,
            cpus=b.cpus,
            memory=b.memory,
            closed=b.closed,
            running=b.running
            + tuple(
                Running(job=s.job, shape=shapes_of[s.job], uuids=place.uuids)
                for s in starts
                for place in s.places
                if place.node == b.node
            ),
        )
        for b in boxes
    ]


@given(jobs, clusters())
def test_nothing_is_given_twice_or_beyond_what_is_there(queue: list[Waiting], boxes: list[Box]) -> None:
    starts = decide(queue, boxes, 0)
    before = {b.node: b for b in boxes}
    for after in apply(starts, queue, boxes):
        if len(after.running) == len(before[after.node].running):
            continue
        assert after.closed is None
        uuids = [uuid for running in after.running for uuid in running.uuids]
        assert len(uuids) == len(set(uuids))
        new = after.running[len(before[after.node].running) :]
        usable = {s.uuid: s for s in after.slots if s.unusable is None}
        for running in new:
            assert len(running.uuids) == running.shape.gpus
            assert all(usable[uuid].memory >= running.shape.gpu_memory_min for uuid in running.uuids)
        if any(running.shape.cpus for running in new):
            assert sum(running.shape.cpus for running in after.running) <= after.cpus
        if any(running.shape.memory for running in new):
            assert sum(running.shape.memory for running in after.running) <= after.memory
    assert len({start.job for start in starts}) == len(starts)
    by_job = {w.job: w for w in queue}
    assert not any(by_job[s.job].held or by_job[s.job].saving for s in starts)
    for start in starts:
        nodes = {place.node for place in start.places}
        assert len(nodes) == len(start.places) == by_job[start.job].nodes
        if by_job[start.job].shape.gpus:
            assert len({before[node].word for node in nodes}) == 1


@given(jobs, clusters(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(queue: list[Waiting], boxes: list[Box], random: Any) -> None:
    expected = decide(queue, boxes, 0)
    random.shuffle(queue)
    random.shuffle(boxes)
    assert decide(queue, boxes, 0) == expected


@given(jobs, clusters())
def test_nobody_overtakes_a_job_of_the_same_shape(queue: list[Waiting], boxes: list[Box]) -> None:
    starting = {start.job for start in decide(queue, boxes, 0)}
    eligible = sorted((w for w in queue if not w.held and not w.saving), key=order)
    for place, waiting in enumerate(eligible):
        if waiting.job not in starting:
            behind = [w.job for w in eligible[place + 1 :] if (w.shape, w.nodes) == (waiting.shape, waiting.nodes)]
            assert not starting & set(behind)


@given(jobs, clusters())
def test_the_first_blocked_job_gets_nearer_or_stays(queue: list[Waiting], boxes: list[Box]) -> None:
    """What those behind it take never leaves the first blocked job with fewer GPUs on its best node."""
    starts = decide(queue, boxes, 0)
    starting = {start.job for start in starts}
    eligible = sorted((w for w in queue if not w.held and not w.saving), key=order)
    blocked = next((w for w in eligible if w.job not in starting), None)
    if blocked is None:
        return
    ahead = {w.job for w in eligible if order(w) < order(blocked)}
    without = apply([s for s in starts if s.job in ahead], queue, boxes)
    assert best(blocked, apply(starts, queue, boxes)) == best(blocked, without)


def best(waiting: Waiting, boxes: list[Box]) -> int:
    able = [b for b in boxes if b.closed is None and b.usable.lack(waiting.shape) is None]
    sums = [0]
    for word in ("GPUs", "slots"):
        have = [min(len(Free.of(b).matching(waiting.shape)), waiting.shape.gpus) for b in able if b.word == word]
        if len(have) >= waiting.nodes:
            sums.append(sum(sorted(have)[-waiting.nodes :]))
    return max(sums)
