"""Idle GPU time, worked out by hand; in GPU-seconds."""

from collections.abc import Sequence

from service.simulator.engine import simulate
from service.simulator.idle import IdleTime
from service.simulator.policies import PRESETS
from service.simulator.quotas import Quotas
from service.simulator.trace import SECOND, Cluster, TraceJob
from tests.support.traces import job


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
