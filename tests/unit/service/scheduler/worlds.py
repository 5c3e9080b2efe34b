"""Small worlds for the policy: nodes, jobs, and what becomes of them when decisions are carried out."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from service.scheduler.boxes import Box, Place, Shape, Slot
from service.scheduler.decisions import Decision, Preempt, Start
from service.scheduler.policy import decide
from service.scheduler.state import Account, Estimate, Reservation, Running, Source, State, Waiting
from torchyard.policy import Policy

GIB = 2**30
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
#: A moment like any other.
NOW = 1_700_000_000 * SECOND
_SHAPE = ("gpu_memory_min", "gpu_share", "gpu_type", "labels", "cpus", "memory")


def slot(index: int, node: str = "a", memory: int = 80 * GIB, **fields: Any) -> Slot:
    return Slot(uuid=f"{node}{index}", index=index, memory=memory, **fields)


def box(node: str = "a", gpus: int = 4, **fields: Any) -> Box:
    defaults: dict[str, Any] = {
        "slots": tuple(slot(i, node) for i in range(gpus)),
        "cpus": 32,
        "memory": 256 * GIB,
    }
    return Box(node=node, **(defaults | fields))


def job(number: int, gpus: int = 1, **fields: Any) -> Waiting:
    shape = Shape(gpus=gpus, **{key: fields.pop(key) for key in _SHAPE if key in fields})
    defaults: dict[str, Any] = {"user": "ann", "project": "vision", "priority": 1, "eligible_us": NOW}
    return Waiting(job=f"j{number}", number=number, shape=shape, **(defaults | fields))


def running(number: int, uuids: str | Iterable[str], gpus: int | None = None, **fields: Any) -> Running:
    """A job on slots named like "a0 a1 b0"; the node is the first letter."""
    names = uuids.split() if isinstance(uuids, str) else list(uuids)
    nodes = list(dict.fromkeys(name[0] for name in names)) or ["a"]
    places = tuple(Place(node=node, uuids=tuple(n for n in names if n[0] == node)) for node in nodes)
    count = len(places[0].uuids) if gpus is None else gpus
    shape = Shape(gpus=count, **{key: fields.pop(key) for key in _SHAPE if key in fields})
    defaults: dict[str, Any] = {
        "user": "ann",
        "project": "vision",
        "priority": 1,
        "nodes": len(nodes),
        "eligible_us": NOW - HOUR,
        "since_us": NOW - HOUR,
    }
    return Running(job=f"r{number}", number=number, shape=shape, places=places, **(defaults | fields))


def known(us: float, source: Source = Source.PROGRESS) -> Estimate:
    return Estimate(p10_us=int(us), p50_us=int(us), p90_us=int(us), source=source)


def state(*parts: Box | Waiting | Running | Reservation, **fields: Any) -> State:
    made = State(
        boxes={part.node: part for part in parts if isinstance(part, Box)},
        reservations=tuple(part for part in parts if isinstance(part, Reservation)),
        **fields,
    )
    made.put(part for part in parts if isinstance(part, Waiting | Running))
    return made


def starts(decisions: Iterable[Decision]) -> dict[str, str]:
    """The slots that each job starts on."""
    return {
        one.job: " ".join(uuid for place in one.places for uuid in place.uuids)
        for one in decisions
        if isinstance(one, Start)
    }


def stops(decisions: Iterable[Decision]) -> dict[str, str]:
    """Who each job is stopped for."""
    return {one.job: one.for_job for one in decisions if isinstance(one, Preempt)}


def carry_out(world: State, decisions: Iterable[Decision], now_us: int) -> None:
    """All at once: a job that is stopped waits again at the same moment."""
    for one in decisions:
        if isinstance(one, Start):
            world.start(one.job, one.places, now_us)
        else:
            world.requeue(one.job, now_us, one.for_job)


def settle(world: State, now_us: int, policy: Policy, rounds: int = 50) -> int:
    """Decides and carries out until there is nothing to do; how many rounds that took."""
    for done in range(rounds):
        decisions = decide(world, now_us, policy)
        if not decisions:
            return done
        carry_out(world, decisions, now_us)
    raise AssertionError(f"no rest after {rounds} rounds")


def check(world: State) -> None:
    """Nothing is given twice or beyond what is there; each job has all of what it asked for, on nodes of one sort."""
    whole: dict[str, str] = {}
    shared: dict[str, int] = {}
    slots = {slot.uuid: slot for one in world.boxes.values() for slot in one.slots}
    for job in world.running.values():
        assert len({place.node for place in job.places}) == len(job.places) == job.nodes
        for place in job.places:
            assert len(set(place.uuids)) == len(place.uuids) == job.shape.gpus
            for uuid in place.uuids:
                if job.shape.gpu_share:
                    shared[uuid] = shared.get(uuid, 0) + job.shape.gpu_share
                else:
                    assert uuid not in whole, f"{uuid} is given to {whole[uuid]} and {job.job}"
                    whole[uuid] = job.job
    assert not whole.keys() & shared.keys()
    assert all(used <= slots[uuid].memory for uuid, used in shared.items())


shapes = st.builds(
    Shape,
    gpus=st.integers(0, 5),
    gpu_memory_min=st.sampled_from([0, 0, 40 * GIB]),
    gpu_share=st.sampled_from([0, 0, 0, 10 * GIB, 30 * GIB]),
    gpu_type=st.sampled_from(["", "", "h100"]),
    labels=st.sampled_from([frozenset(), frozenset(), frozenset({"fast"})]),
    cpus=st.integers(0, 6),
    memory=st.sampled_from([0, 0, 8 * GIB]),
)
users = st.sampled_from(["ann", "bob", "eve"])
projects = st.sampled_from(["vision", "speech"])
estimates = st.none() | st.builds(known, st.integers(1, 100).map(lambda n: n * 10 * MINUTE), st.sampled_from(Source))


@st.composite
def waiting_jobs(draw: st.DrawFn, most: int = 20) -> list[Waiting]:
    found = []
    for number in range(draw(st.integers(0, most))):
        shape = draw(shapes)
        found.append(
            replace(
                job(number, user=draw(users), project=draw(projects), priority=draw(st.integers(0, 2))),
                shape=shape if shape.gpus else replace(shape, gpu_share=0, cpus=max(shape.cpus, 1)),
                nodes=draw(st.sampled_from([1, 1, 1, 2, 3])),
                group=draw(st.sampled_from([None, None, "sweep"])),
                eligible_us=NOW - draw(st.integers(0, 100)) * HOUR,
                limit_us=draw(st.none() | st.integers(1, 20).map(lambda n: n * 10 * MINUTE)),
                remaining=draw(estimates),
                preemptible=draw(st.booleans()),
            )
        )
    return found


@st.composite
def boxes(draw: st.DrawFn) -> list[Box]:
    found = []
    for node in "abc"[: draw(st.integers(1, 3))]:
        kind = draw(st.sampled_from(["gpu", "gpu", "cpu"]))
        slots = tuple(
            slot(
                index,
                node,
                draw(st.sampled_from([16, 80])) * GIB,
                kind=kind,
                unusable=draw(st.sampled_from([None, None, None, "stuck"])),
                name=draw(st.sampled_from(["NVIDIA H100", "NVIDIA A100"])),
                numa=draw(st.sampled_from([None, 0, 1])),
            )
            for index in range(draw(st.integers(0, 6)))
        )
        labels = draw(st.sampled_from([frozenset(), frozenset({"fast"})]))
        found.append(
            Box(
                node=node,
                slots=slots,
                cpus=draw(st.integers(0, 12)),
                memory=draw(st.integers(0, 64)) * GIB,
                labels=labels,
            )
        )
    return found


accounts = st.builds(
    Account,
    weight=st.sampled_from([0.5, 1.0, 2.0]),
    usage=st.floats(0, 1e6),
    usage_us=st.just(NOW - DAY),
    max_gpus=st.none() | st.integers(0, 6),
    week_left_us=st.none() | st.integers(0, 100).map(lambda n: n * HOUR),
)


@st.composite
def worlds(draw: st.DrawFn, most: int = 20) -> State:
    """Nodes with jobs that wait, after some have been started."""
    made = State(
        boxes={one.node: one for one in draw(boxes())},
        users=draw(st.dictionaries(users, accounts, max_size=3)),
        projects=draw(st.dictionaries(projects, accounts, max_size=2)),
        caps=draw(st.dictionaries(st.just("sweep"), st.integers(0, 4), max_size=1)),
    )
    made.put(draw(waiting_jobs(most)))
    before = NOW - draw(st.integers(0, 10)) * HOUR
    free = made.copy()
    free.users, free.projects = {}, {}
    for one in decide(free, before, Policy()):
        if isinstance(one, Start) and draw(st.booleans()):
            made.start(one.job, one.places, before)
    return made


policies = st.builds(
    Policy,
    order=st.sampled_from(["fair", "fair", "fifo", "sjf", "srtf", "las"]),
    backfill=st.booleans(),
    preemption=st.booleans(),
    time_slice=st.sampled_from([None, 60]),
    min_run=st.sampled_from([0, 60]),
)
