"""Why devices are idle, as data: for whom, until when, and who cannot be stopped for it."""

from hypothesis import given, settings

from service.scheduler.explain import idle, idle_words
from service.scheduler.explain.blockers import DecisionReview
from service.scheduler.explain.idle import NodeIdleDevices
from service.scheduler.explain.names import Names
from service.scheduler.model.jobs import IneligibleReason, ReservationInfo, TenantAccount
from service.scheduler.model.nodes import ClosedReason
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.order import order
from tests.unit.service.scheduler.worlds import (
    HOUR,
    MINUTE,
    NOW,
    job,
    known,
    node_info,
    policies,
    running,
    state,
    worlds,
)
from torchyard.api import IdleReason
from torchyard.spec.policy import Policy

FAIR = Policy()


def found(world: SchedulerState, policy: Policy = FAIR) -> list[NodeIdleDevices]:
    return idle.find(world, DecisionReview(world, NOW, policy), order(world, NOW, policy), NOW)


def reasons(world: SchedulerState, policy: Policy = FAIR) -> list[tuple[str, str | None]]:
    return [(each.reason.value, each.job) for each in found(world, policy)]


def test_nobody_waits_or_nobody_who_could_use_it() -> None:
    assert reasons(state(node_info(gpus=1))) == [("nobody", None)]
    assert reasons(state(node_info(gpus=1), job(1, ineligible=IneligibleReason.HELD))) == [("ineligible", None)]
    assert reasons(state(node_info(gpus=1), job(1, gpu_type="h100"))) == [("unsuitable", None)]
    over = state(node_info(gpus=1), job(1), users={"ann": TenantAccount(max_gpus=0)})
    assert reasons(over) == [("quota", None)]
    assert reasons(state(node_info(gpus=1), job(1), paused="paused by eve")) == [("queue-paused", None)]


def test_a_closed_node_and_one_where_a_job_starts() -> None:
    world = state(node_info("a", gpus=1), node_info("b", gpus=1, closed=ClosedReason.DRAINING), job(1))
    assert reasons(world) == [("starting", "j1"), ("closed", None)]


def test_too_few_for_the_first_job_and_who_cannot_be_stopped() -> None:
    holder = running(1, "a0", remaining=known(HOUR), preemptible=False)
    (only,) = found(state(node_info(gpus=2), holder, job(1, gpus=2)))
    assert (only.reason, only.job, only.unstoppable) == (IdleReason.TOO_FEW, "j1", ("r1",))
    assert only.until_us == NOW + HOUR
    pinned = running(1, "a0", remaining=known(HOUR), pinned=True)
    assert found(state(node_info(gpus=2), pinned, job(1, gpus=2)))[0].unstoppable == ("r1",)


def test_kept_for_a_blocked_job_until_it_can_start() -> None:
    holder = running(1, "a0", remaining=known(HOUR), preemptible=False)
    behind = job(2, remaining=known(5 * HOUR))
    first = job(1, gpus=2, eligible_us=NOW - HOUR, remaining=known(MINUTE))
    (only,) = found(state(node_info(gpus=2), holder, first, behind))
    assert (only.reason, only.job, only.until_us) == (IdleReason.KEPT, "j1", NOW + HOUR)
    assert only.unstoppable == ("r1",)


def test_what_others_are_stopped_for() -> None:
    gone = running(1, "a0", preemptible=True, preempted_for="j1", remaining=known(HOUR))
    assert reasons(state(node_info(gpus=2), gone, job(1, gpus=2))) == [("preempting", "j1")]


def test_a_reservation_that_has_begun() -> None:
    reserved = ReservationInfo(id="res", name="demo", starts_us=NOW - HOUR, ends_us=NOW + HOUR, gpus=1)
    rest = found(state(node_info(gpus=2), reserved, job(1)))
    assert [(each.reason.value, each.reservation, len(each.uuids)) for each in rest] == [
        ("starting", None, 1),
        ("reserved", "res", 1),
    ]
    assert rest[1].until_us == NOW + HOUR


@settings(max_examples=300, deadline=None)
@given(worlds(), policies)
def test_each_free_device_has_one_reason(world: SchedulerState, policy: Policy) -> None:
    said = found(world, policy)
    free = sorted(uuid for capacity in world.capacities().values() for uuid in capacity.free)
    assert sorted(uuid for each in said for uuid in each.uuids) == free
    for each in said:
        assert idle_words.tell(world, Names(), each).message
        assert each.job is None or each.job in world.waiting
        assert all(not world.running[one].preemptible for one in each.unstoppable)


@settings(max_examples=200, deadline=None)
@given(worlds())
def test_nothing_is_idle_for_no_reason(world: SchedulerState) -> None:
    """A pass of the policy that a new box has leaves no device to nobody where a job fits that may have it."""
    for each in found(world):
        assert each.reason is not IdleReason.NEXT, each
