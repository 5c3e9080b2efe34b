"""What a pass of the scheduler costs: as the service itself counts it (``/metrics``), and of the policy alone."""

import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.figure import Figure
from benchmarks.http import KeepAliveConnection
from benchmarks.stack import Stack
from service.scheduler.model.jobs import Waiting
from service.scheduler.model.nodes import NodeInfo, ResourceRequest, Slot
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import Start, decide
from torchyard.spec.policy import Policy

QUEUED = 10_000
_SECONDS = "torchyard_scheduler_pass_seconds_"


def passes(stack: Stack) -> Iterator[Figure]:
    """A pass while both slots are held: with an empty queue, and with 10,000 jobs that cannot start."""
    connection = stack.connect()
    for _ in range(2):
        _until_running(connection, stack.submit(connection, command=["sleep", "600"]))
    empty = _pass_ms(connection)
    _multiply(stack, stack.submit(connection, command=["true"]))
    _pass_ms(connection, count=1)  # each job is read once; later passes remember it
    full = _pass_ms(connection)
    yield Figure(name="scheduling pass, empty queue", value=empty, unit="ms")
    yield Figure(
        name="scheduling pass, 10,000 queued", value=full, unit="ms", baseline=empty, against="empty pass"
    )  # fmt: skip


def _until_running(connection: KeepAliveConnection, job: str) -> None:
    while connection.json("GET", f"/api/v1/jobs/{job}")["state"] != "running":
        time.sleep(0.05)


def _pass_ms(connection: KeepAliveConnection, count: int = 5) -> float:
    """The mean of the next passes, of which there is one a second while nothing happens."""
    before = after = _counted(connection)
    while after["count"] < before["count"] + count:
        time.sleep(0.1)
        after = _counted(connection)
    return (after["sum"] - before["sum"]) / (after["count"] - before["count"]) * 1000


def _counted(connection: KeepAliveConnection) -> dict[str, float]:
    _, _, text = connection.request("GET", "/metrics")
    pairs = (line.split() for line in text.decode().splitlines() if line.startswith(_SECONDS))
    return {name.removeprefix(_SECONDS): float(value) for name, value in pairs if "{" not in name}


def _multiply(stack: Stack, job: str) -> None:
    """Copies of a queued job, straight into the database: to submit them all would take most of a minute."""
    with sqlite3.connect(stack.home / "service" / "torchyard.db", timeout=30) as database:
        names = [f'"{row[1]}"' for row in database.execute("PRAGMA table_info(jobs)")]
        changed = {'"id"': "id || '-' || n", '"number"': "number + n"}
        chosen = ", ".join(changed.get(name, name) for name in names)
        database.execute(
            f"WITH RECURSIVE copies(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < {QUEUED - 1}) "
            f"INSERT INTO jobs ({', '.join(names)}) SELECT {chosen} FROM jobs, copies WHERE id = ?",
            (job,),
        )
    database.close()


#: The policy alone: so many jobs wait for so many nodes with eight GPUs each.
CROWD, NODES = 100_000, 125
_SECOND_US = 1_000_000
_NOW_US = 1_700_000_000 * _SECOND_US


def policy_passes(stack: Stack) -> Iterator[Figure]:
    """One decision of the policy, no service: 100,000 queued and 1,000 GPUs, against sorting as many numbers."""
    del stack
    policy, world = Policy(), SchedulerState(nodes={f"n{number:03}": _node(number) for number in range(NODES)})
    numbers = np.random.default_rng(0).random(CROWD)
    bare = _median_ms(lambda: np.sort(numbers))
    yield Figure(name="policy, empty queue", value=_median_ms(lambda: decide(world, _NOW_US, policy)) * 1000, unit="us")
    world.put(_job(number) for number in range(CROWD))
    yield _crowded("policy, all GPUs free", _median_ms(lambda: decide(world, _NOW_US, policy)), bare)
    for decision in decide(world, _NOW_US, policy):
        assert isinstance(decision, Start)
        world.start(decision.job, decision.placements, _NOW_US)
    soon, later = _NOW_US + _SECOND_US, _NOW_US + 2 * policy.min_run * _SECOND_US
    idle = _median_ms(lambda: decide(world, soon, policy))
    yield _crowded("policy, all GPUs held, nothing to do", idle, bare, limit=1)
    busy = _median_ms(lambda: decide(world, later, policy))
    yield _crowded("policy, half of what runs can be stopped", busy, bare)


def _crowded(name: str, value: float, bare: float, limit: float = 100) -> Figure:
    return Figure(
        name=name,
        value=value,
        unit="ms",
        target=f"< {limit}",
        met=value < limit,
        baseline=bare,
        against="sorting 100,000 numbers",
    )


def _median_ms(work: Callable[[], object], runs: int = 9) -> float:
    """After one run that is not counted."""
    times = []
    for _ in range(runs + 1):
        before = time.perf_counter()
        work()
        times.append(time.perf_counter() - before)
    return statistics.median(times[1:]) * 1000


def _node(number: int) -> NodeInfo:
    slots = tuple(Slot(uuid=f"{number}-{index}", index=index, memory=80 * 2**30) for index in range(8))
    return NodeInfo(name=f"n{number:03}", slots=slots, cpus=64, memory=2**40)


def _job(number: int) -> Waiting:
    return Waiting(
        job=f"j{number}",
        number=number,
        user=f"user-{number % 20}",
        project=f"project-{number % 5}",
        priority=1,
        resources=ResourceRequest(gpus=(1, 1, 1, 2, 4, 8)[number * 7919 % 6]),
        eligible_us=_NOW_US - number * _SECOND_US,
        preemptible=number % 2 == 0,
    )
