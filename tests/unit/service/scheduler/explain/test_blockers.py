"""What keeps a job from starting, as data."""

from service.scheduler.explain.blockers import Blocker, Obstacle, blockers
from service.scheduler.explain.lack import Lack
from service.scheduler.model.jobs import IneligibleReason, ReservationInfo, TenantAccount
from service.scheduler.model.nodes import ClosedReason
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.quotas import QuotaKind, Reached
from tests.unit.service.scheduler.worlds import GIB, HOUR, NOW, job, node_info, running, slot, state
from torchyard.spec.policy import Order, Policy

FIFO = Policy(order=Order.FIFO, preemption=False, time_slice=None)


def found(world: SchedulerState, name: str = "j1") -> list[Blocker]:
    return blockers(world, name, NOW, FIFO)


def test_what_is_its_own() -> None:
    assert found(state(node_info(), job(1, ineligible=IneligibleReason.SAVING))) == [
        Blocker(obstacle=Obstacle.INELIGIBLE, ineligible=IneligibleReason.SAVING)
    ]
    assert found(state(job(1))) == [Blocker(obstacle=Obstacle.NO_NODES)]
    params = {"node": "a", "lack": "slots", "found": 1, "needed": 2, "unit": "gpu"}
    lack = Lack(words="node a has 1 GPUs, the job needs 2", params=params)
    assert found(state(node_info(gpus=1), job(1, gpus=2))) == [Blocker(obstacle=Obstacle.NEVER_FITS, lack=lack)]
    assert found(state(node_info(), job(1))) == [Blocker(obstacle=Obstacle.STARTING)]
    world = state(node_info(gpus=1), running(1, "a0", preempted_for="j1"), job(1))
    assert found(world) == [Blocker(obstacle=Obstacle.PREEMPTING, jobs=("r1",))]


def test_nobody_gives_way_any_more_to_one_that_would_not_start() -> None:
    world = state(
        node_info(gpus=1, closed=ClosedReason.DRAINING), running(1, "a0", preempted_for="j1", stops=True), job(1)
    )
    assert found(world) == [Blocker(obstacle=Obstacle.CLOSED, node="a", closed=ClosedReason.DRAINING)]


def test_quotas_with_what_is_used() -> None:
    world = state(node_info(), running(1, "a0"), job(1), users={"ann": TenantAccount(max_gpus=1)})
    reached = Reached(quota=QuotaKind.USER_GPUS, whose="ann", used=1, limit=1)
    assert found(world) == [Blocker(obstacle=Obstacle.QUOTA, reached=reached)]
    sweep = state(node_info(), running(1, "a0", group="s"), job(1, group="s"), caps={"s": 1})
    assert found(sweep)[0].reached == Reached(quota=QuotaKind.SWEEP, whose="s", used=1, limit=1)


def test_what_is_held_of_each_node_and_by_whom() -> None:
    infos = [
        node_info("a", gpus=2),
        node_info("b", gpus=2, closed=ClosedReason.DRAINING),
        node_info("c", slots=(slot(0, "c", unusable="x"),)),
    ]
    world = state(*infos, running(1, "a0 a1"), job(1))
    params = {"lack": "slots", "found": 0, "needed": 1, "unit": "cpu"}
    lack = Lack(words="has 0 CPU slots, the job needs 1", params=params)
    assert found(world) == [
        Blocker(obstacle=Obstacle.GPUS, node="a", needed=1, free=0, jobs=("r1",)),
        Blocker(obstacle=Obstacle.CLOSED, node="b", closed=ClosedReason.DRAINING),
        Blocker(obstacle=Obstacle.UNUSABLE, node="c", lack=lack),
    ]
    short = state(node_info(cpus=4), running(1, "", cpus=3), job(1, cpus=2))
    assert found(short) == [Blocker(obstacle=Obstacle.CPUS, node="a", needed=2, free=1, jobs=("r1",))]
    full = state(node_info(memory=4 * GIB), running(1, "", memory=3 * GIB), job(1, memory=2 * GIB))
    assert found(full)[0].obstacle is Obstacle.MEMORY


def test_what_others_get() -> None:
    kept = state(node_info(), running(1, "a0"), job(1), job(0, gpus=4))
    assert found(kept) == [Blocker(obstacle=Obstacle.KEPT, node="a", jobs=("j0",))]
    behind = state(node_info(gpus=1), job(0), job(1))
    assert found(behind) == [Blocker(obstacle=Obstacle.BEHIND, node="a", jobs=("j0",))]
    theirs = ReservationInfo(id="r", name="demo", starts_us=NOW, ends_us=NOW + HOUR, users=frozenset({"bob"}))
    assert found(state(node_info(), theirs, job(1))) == [
        Blocker(obstacle=Obstacle.RESERVED, node="a", reservation="r"),
    ]


def test_too_few_nodes_at_once() -> None:
    world = state(node_info("a", gpus=1), node_info("b", gpus=1), running(1, "a0"), job(1, nodes=2))
    assert found(world)[-1] == Blocker(obstacle=Obstacle.NODES, needed=2, free=1)
