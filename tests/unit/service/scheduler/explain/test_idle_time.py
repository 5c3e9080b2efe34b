"""Idle GPU time, worked out by hand; in GPU-seconds."""

from collections.abc import Sequence

from service.scheduler.explain.idle_time import IdleTime, idle_gpus
from service.scheduler.model.jobs import IneligibleReason, ReservationInfo, TenantAccount
from service.scheduler.model.nodes import ClosedReason
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import SchedulingPass
from service.simulator.engine import simulate
from service.simulator.policies import PRESETS
from service.simulator.quotas import Quotas
from service.simulator.trace import SECOND, Cluster, TraceJob
from tests.support.traces import job
from tests.unit.service.scheduler import worlds
from tests.unit.service.scheduler.worlds import HOUR, MINUTE, NOW, known, node_info, running, state
from torchyard.spec.policy import Policy


def idle(policy: str, jobs: Sequence[TraceJob], gpus: int = 2, **users: dict[str, float]) -> tuple[float, float]:
    """Avoidable and kept."""
    found, limits = IdleTime(), Quotas.model_validate({"users": users})
    simulate(jobs, Cluster(nodes=1, gpus=gpus), PRESETS[policy], 0, limits, idle=found)
    return found.avoidable_us / SECOND, found.kept_us / SECOND


def test_nothing_is_idle_that_nobody_could_use() -> None:
    assert idle("fifo", [job(0, 100), job(10, 100, gpus=2)]) == (0, 0)


def test_what_stands_behind_a_blocked_job_without_backfill_is_avoidable() -> None:
    assert idle("fifo", [job(0, 100), job(10, 100, gpus=2), job(20, 10)]) == (80, 0)


def test_what_is_held_for_a_blocked_job_is_kept() -> None:
    jobs = [job(0, 100, estimate=100), job(10, 100, gpus=2), job(20, 500)]
    assert idle("fifo-backfill", jobs) == (0, 80)


def test_a_quota_makes_nothing_idle() -> None:
    assert idle("fifo", [job(0, 100), job(10, 100)], ada={"max_gpus": 1}) == (0, 0)


def after_a_pass(world: SchedulerState, policy: Policy = Policy()) -> tuple[int, int, int]:  # noqa: B008  frozen
    """Avoidable, kept and reserved GPUs once the policy has decided."""
    done = SchedulingPass(world, NOW, policy)
    done.run()
    return idle_gpus(world, done.cluster, NOW, policy, done.decided)


HOLDER = running(1, "a0", remaining=known(HOUR), preemptible=False)
WIDE = worlds.job(1, gpus=2, eligible_us=NOW - HOUR, remaining=known(MINUTE))
BEHIND = worlds.job(2, remaining=known(5 * HOUR))


def test_a_live_gpu_that_is_held_for_a_blocked_job_is_kept() -> None:
    assert after_a_pass(state(node_info(gpus=2), HOLDER, WIDE, BEHIND)) == (0, 1, 0)


def test_a_live_gpu_is_not_idle_if_nobody_who_may_start_fits() -> None:
    assert after_a_pass(state(node_info(gpus=2), HOLDER, WIDE)) == (0, 0, 0)
    assert after_a_pass(state(node_info(gpus=2), HOLDER, worlds.job(3, gpu_type="h100"))) == (0, 0, 0)
    assert after_a_pass(state(node_info(gpus=2), HOLDER, worlds.job(3, ineligible=IneligibleReason.HELD))) == (0, 0, 0)
    over = state(node_info(gpus=2), HOLDER, WIDE, BEHIND, users={"ann": TenantAccount(max_gpus=0)})
    assert after_a_pass(over) == (0, 0, 0)


def test_a_live_gpu_is_not_idle_if_a_job_gets_it() -> None:
    assert after_a_pass(state(node_info(gpus=2), worlds.job(3, gpus=1), worlds.job(4, gpus=1))) == (0, 0, 0)


def test_a_live_gpu_is_reserved_that_a_waiting_job_would_have_but_for_a_reservation() -> None:
    reserved = ReservationInfo(id="res", name="demo", starts_us=NOW - HOUR, ends_us=NOW + HOUR, gpus=1)
    assert after_a_pass(state(node_info(gpus=2), HOLDER, reserved, BEHIND)) == (0, 0, 1)
    assert after_a_pass(state(node_info(gpus=2), HOLDER, reserved)) == (0, 0, 0), "nobody waits"
    assert after_a_pass(state(node_info(gpus=2), HOLDER, reserved, WIDE)) == (0, 0, 0), "nobody who waits fits"
    work = ReservationInfo(
        id="res", name="fans", starts_us=NOW, ends_us=NOW + HOUR, maintenance=True, nodes=frozenset("b")
    )
    closed = node_info("b", gpus=3, closed=ClosedReason.DRAINING, maintenance="res")
    assert after_a_pass(state(node_info(gpus=1), closed, HOLDER, work, BEHIND)) == (0, 0, 3)


def test_a_live_gpu_that_stands_behind_a_blocked_job_is_avoidable() -> None:
    strict = Policy(backfill=False, preemption=False, time_slice=None)
    assert after_a_pass(state(node_info(gpus=2), HOLDER, WIDE, BEHIND), strict) == (1, 0, 0)
