"""Small worlds for the policy: nodes, jobs, and what becomes of them when decisions are carried out."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from service.scheduler.model.decisions import Decision, Preempt, PutBack, Start
from service.scheduler.model.jobs import Estimate, EstimateSource, ReservationInfo, Running, TenantAccount, Waiting
from service.scheduler.model.nodes import NodeInfo, Placement, ResourceRequest, Slot
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import decide
from torchyard.spec.policy import Policy

GIB = 2**30
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
#: A moment like any other.
NOW = 1_700_000_000 * SECOND
_RESOURCES = (
    "gpu_memory_min",
    "gpu_share",
    "gpu_type",
    "labels",
    "isolated",
    "secrets",
    "cpus",
    "memory",
    "excluded_nodes",
)


def slot(index: int, node: str = "a", memory: int = 80 * GIB, **fields: Any) -> Slot:
    return Slot(uuid=f"{node}{index}", index=index, memory=memory, **fields)


def node_info(node: str = "a", gpus: int = 4, **fields: Any) -> NodeInfo:
    defaults: dict[str, Any] = {
        "slots": tuple(slot(i, node) for i in range(gpus)),
        "cpus": 32,
        "memory": 256 * GIB,
    }
    return NodeInfo(name=node, **(defaults | fields))


def job(number: int, gpus: int = 1, **fields: Any) -> Waiting:
    resources = ResourceRequest(gpus=gpus, **{key: fields.pop(key) for key in _RESOURCES if key in fields})
    defaults: dict[str, Any] = {"user": "ann", "project": "vision", "priority": 1, "eligible_us": NOW}
    return Waiting(job=f"j{number}", number=number, resources=resources, **(defaults | fields))


def running(number: int, uuids: str | Iterable[str], gpus: int | None = None, **fields: Any) -> Running:
    """A job on slots named like "a0 a1 b0"; the node is the first letter."""
    names = uuids.split() if isinstance(uuids, str) else list(uuids)
    nodes = list(dict.fromkeys(name[0] for name in names)) or ["a"]
    placements = tuple(Placement(node=node, uuids=tuple(n for n in names if n[0] == node)) for node in nodes)
    count = len(placements[0].uuids) if gpus is None else gpus
    resources = ResourceRequest(gpus=count, **{key: fields.pop(key) for key in _RESOURCES if key in fields})
    defaults: dict[str, Any] = {
        "user": "ann",
        "project": "vision",
        "priority": 1,
        "nodes": len(nodes),
        "eligible_us": NOW - HOUR,
        "since_us": NOW - HOUR,
    }
    return Running(job=f"r{number}", number=number, resources=resources, placements=placements, **(defaults | fields))


def known(us: float, source: EstimateSource = EstimateSource.PROGRESS) -> Estimate:
    return Estimate(p10_us=int(us), p50_us=int(us), p90_us=int(us), source=source)


def state(*given: NodeInfo | Waiting | Running | ReservationInfo, **fields: Any) -> SchedulerState:
    made = SchedulerState(
        nodes={each.name: each for each in given if isinstance(each, NodeInfo)},
        reservations=tuple(each for each in given if isinstance(each, ReservationInfo)),
        **fields,
    )
    made.put(each for each in given if isinstance(each, Waiting | Running))
    return made


def starts(decisions: Iterable[Decision]) -> dict[str, str]:
    """The slots that each job starts on."""
    return {
        one.job: " ".join(uuid for placement in one.placements for uuid in placement.uuids)
        for one in decisions
        if isinstance(one, Start)
    }


def stops(decisions: Iterable[Decision]) -> dict[str, str]:
    """Who each job is stopped for."""
    return {one.job: one.for_job for one in decisions if isinstance(one, Preempt)}


def carry_out(world: SchedulerState, decisions: Iterable[Decision], now_us: int) -> None:
    """All at once: a job that is stopped waits again at the same moment."""
    for one in decisions:
        if isinstance(one, Start):
            world.start(one.job, one.placements, now_us)
        else:
            world.requeue(one.job, now_us)
            if isinstance(one, Preempt) and one.for_job in world.waiting:
                world.promised[one.for_job] = None


def settle(world: SchedulerState, now_us: int, policy: Policy, rounds: int = 50) -> int:
    """Decides and carries out until there is nothing to do; how many rounds that took."""
    for done in range(rounds):
        decisions = decide(world, now_us, policy)
        if not decisions:
            return done
        carry_out(world, decisions, now_us)
    raise AssertionError(f"no rest after {rounds} rounds")


def put_back(decisions: Iterable[Decision]) -> dict[str, str]:
    """Who each job is put back for."""
    return {one.job: one.for_job for one in decisions if isinstance(one, PutBack)}


def on_trial(world: SchedulerState, random: Random) -> None:
    """Some of those that may start over are on trial still."""
    for one in [each for each in world.running.values() if each.restartable and random.random() < 0.7]:
        remaining = random.choice([None, replace(known(random.randint(1, 100) * 10 * MINUTE), as_of_us=NOW)])
        tried = replace(
            one,
            since_us=NOW - MINUTE,
            ran_us=0,
            remaining=remaining,
            starts_over=True,
            begun_us=NOW - MINUTE,
            trial_ends_us=NOW,
        )
        world.put([tried])


def check(world: SchedulerState) -> None:
    """Nothing is given twice or beyond what is there; each job has all of what it asked for, on nodes of one sort."""
    whole: dict[str, str] = {}
    shared: dict[str, int] = {}
    slots = {slot.uuid: slot for one in world.nodes.values() for slot in one.slots}
    for job in world.running.values():
        assert len({placement.node for placement in job.placements}) == len(job.placements) == job.nodes
        for placement in job.placements:
            assert len(set(placement.uuids)) == len(placement.uuids) == job.resources.gpus
            for uuid in placement.uuids:
                if job.resources.gpu_share:
                    assert world.nodes[placement.node].knows_shares
                    shared[uuid] = shared.get(uuid, 0) + job.resources.gpu_share
                else:
                    assert uuid not in whole, f"{uuid} is given to {whole[uuid]} and {job.job}"
                    whole[uuid] = job.job
    assert not whole.keys() & shared.keys()
    assert all(used <= slots[uuid].memory for uuid, used in shared.items())


def _resources(random: Random) -> ResourceRequest:
    gpus = random.choice([0, 1, 1, 1, 2, 2, 3, 4, 5])
    return ResourceRequest(
        gpus=gpus,
        gpu_memory_min=random.choice([0, 0, 0, 0, 40 * GIB]),
        gpu_share=random.choice([0, 0, 0, 10 * GIB, 30 * GIB]) if gpus else 0,
        gpu_type=random.choice(["", "", "", "", "h100"]),
        labels=random.choice([frozenset()] * 5 + [frozenset({"fast"})]),
        isolated=random.random() < 0.1,
        secrets=random.random() < 0.1,
        cold=random.random() < 0.1,
        cpus=max(random.choice([0, 0, 0, 1, 6]), 0 if gpus else 1),
        memory=random.choice([0, 0, 8 * GIB]),
        excluded_nodes=random.choice([frozenset()] * 7 + [frozenset("a")]),
    )


def _job(random: Random, number: int) -> Waiting:
    estimate = known(random.randint(1, 100) * 10 * MINUTE, random.choice(list(EstimateSource)))
    return replace(
        job(number, user=random.choice(["ann", "bob", "eve"]), project=random.choice(["vision", "speech"])),
        resources=_resources(random),
        priority=random.randint(0, 2),
        nodes=random.choice([1, 1, 1, 1, 1, 2, 3]),
        group=random.choice([None, None, "sweep"]),
        eligible_us=NOW - random.randint(0, 100) * HOUR,
        limit_us=random.choice([None, random.randint(1, 20) * 10 * MINUTE]),
        remaining=random.choice([None, estimate]),
        **_will(random),
    )


def _will(random: Random) -> dict[str, Any]:
    """Whether it may be stopped, must not be, or neither is known yet."""
    preemptible = random.random() < 0.7
    pinned = not preemptible and random.random() < 0.3
    restartable = not preemptible and not pinned and random.random() < 0.7
    return {"preemptible": preemptible, "pinned": pinned, "restartable": restartable}


def _slot(random: Random, index: int, node: str, kind: str) -> Slot:
    return slot(
        index,
        node,
        random.choice([16, 80]) * GIB,
        kind=kind,
        unusable=random.choice([None] * 7 + ["stuck"]),
        name=random.choice(["NVIDIA H100", "NVIDIA A100"]),
        numa=random.choice([None, 0, 1]),
    )


def _info(random: Random, node: str) -> NodeInfo:
    kind = random.choice(["gpu", "gpu", "cpu"])
    return NodeInfo(
        name=node,
        slots=tuple(_slot(random, index, node, kind) for index in range(random.randint(1, 6))),
        cpus=random.randint(2, 24),
        memory=random.randint(0, 64) * GIB,
        labels=random.choice([frozenset(), frozenset({"fast"})]),
        knows_shares=random.random() < 0.8,
        knows_secrets=random.random() < 0.8,
        knows_warm_start=random.random() < 0.8,
        isolates=random.random() < 0.8,
    )


def _account(random: Random) -> TenantAccount:
    return TenantAccount(
        weight=random.choice([0.5, 1.0, 2.0]),
        usage=random.random() * 1e6,
        usage_us=NOW - DAY,
        max_gpus=random.choice([None, None, random.randint(0, 9)]),
        week_left_us=random.choice([None, None, random.randint(0, 100) * HOUR]),
    )


def _some_accounts(random: Random, names: Iterable[str]) -> dict[str, TenantAccount]:
    return {name: _account(random) for name in names if random.random() < 0.3}


@st.composite
def worlds(draw: st.DrawFn, most: int = 20) -> SchedulerState:
    """Nodes with jobs that wait, after some have been started. Drawn as numbers of them and a seed, which is quick."""
    nodes, count, random = draw(st.integers(1, 3)), draw(st.integers(0, most)), Random(draw(st.integers(0, 2**32)))
    made = SchedulerState(nodes={node: _info(random, node) for node in "abc"[:nodes]})
    made.put(_job(random, number) for number in range(count))
    before = NOW - random.randint(0, 10) * HOUR
    for one in decide(made, before, Policy()):
        if isinstance(one, Start) and random.random() < 0.8:
            made.start(one.job, one.placements, before)
    on_trial(made, random)
    made.users = _some_accounts(random, ("ann", "bob", "eve"))
    made.projects = _some_accounts(random, ("vision", "speech"))
    made.caps = random.choice([{}, {"sweep": random.randint(0, 4)}])
    return made


@st.composite
def crowds(draw: st.DrawFn) -> SchedulerState:
    """Few nodes, full of jobs that can mostly be stopped, and preemptors alike in what they need, not in the rest."""
    random = Random(draw(st.integers(0, 2**32)))
    made = SchedulerState(
        nodes={node: node_info(node, random.choice([1, 2, 4])) for node in "ab"[: random.randint(1, 2)]}
    )
    jobs = [_rival(random, number) for number in range(random.randint(7, 14))]
    made.put(jobs[:6])
    before = NOW - 2 * HOUR
    for one in decide(made, before, Policy(time_slice=None)):
        if isinstance(one, Start):
            made.start(one.job, one.placements, before)
    on_trial(made, random)
    made.put(jobs[6:])
    made.users = random.choice([{}, {"ann": TenantAccount(usage=1e6, usage_us=NOW)}])
    return made


def _rival(random: Random, number: int) -> Waiting:
    return job(
        number,
        random.choice([1, 1, 1, 2]),
        user=random.choice(["ann", "bob"]),
        priority=random.randint(0, 2),
        eligible_us=NOW - random.choice([0, 1, 10, 100]) * HOUR,
        limit_us=random.choice([None, None, HOUR]),
        remaining=random.choice([None, known(random.randint(1, 20) * 10 * MINUTE)]),
        ran_us=random.choice([0, MINUTE, HOUR]),
        **_will(random),
    )


policies = st.builds(
    Policy,
    order=st.sampled_from(["fair", "fair", "fifo", "sjf", "srtf", "las"]),
    backfill=st.booleans(),
    preemption=st.booleans(),
    time_slice=st.sampled_from([None, 60]),
    min_run=st.sampled_from([0, 60]),
)
