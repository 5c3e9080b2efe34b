"""Who shares a GPU has had a part of its time."""

import pytest

from service.scheduler.model import fractions
from service.scheduler.model.jobs import TenantAccount
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import decide
from service.scheduler.policy.quotas import RemainingQuotas
from service.scheduler.policy.shares import shares
from tests.unit.service.scheduler.worlds import GIB, HOUR, NOW, job, known, node_info, running, starts, state
from torchyard.spec.policy import Policy


def test_what_others_may_have() -> None:
    infos = {"a": node_info("a"), "b": node_info("b")}
    for held, shareable_gpus in (
        (running(1, "a0"), 0),
        (running(1, "a0", gpu_share=20 * GIB), 0.75),
        (running(1, "a0 a1 b0 b1", gpu_share=60 * GIB), 1),
        (running(1, "a0", gpu_share=100 * GIB), 0),
        (running(1, "a9 c0", gpu_share=20 * GIB), 0),
    ):
        assert fractions.shareable_gpus(held.resources, held.placements, infos) == shareable_gpus


def week_used(world: SchedulerState) -> float:
    (reached,) = RemainingQuotas(world, NOW).reached(
        world.classes.key(int(world.table.class_id[world.table.rows["j1"]]))
    )
    return reached.used / HOUR


def test_hours_of_a_week_are_parts() -> None:
    users = {"ann": TenantAccount(week_left_us=1)}
    whole, part = running(1, "a0"), running(2, "a1", gpu_share=20 * GIB)
    assert week_used(state(node_info(), whole, job(1), users=users)) == 1
    assert week_used(state(node_info(), whole, part, job(1), users=users)) == 1.25
    world = state(node_info(), whole, part, job(1), users=users)
    world.remove("r2")
    assert week_used(world) == 1
    world.put([running(3, "a2", gpu_share=60 * GIB, remaining=known(HOUR))])
    assert week_used(world.copy()) == 2.5, "what it needs still is a part as well"


@pytest.mark.parametrize(("left", "started"), [(0.2, 1), (0.3, 2), (0.6, 3)])
def test_what_starts_at_once_is_charged_with_parts(left: float, started: int) -> None:
    jobs = [job(number, gpu_share=20 * GIB, remaining=known(HOUR)) for number in range(3)]
    world = state(node_info(), *jobs, users={"ann": TenantAccount(week_left_us=round(left * HOUR))})
    assert len(starts(decide(world, NOW, Policy()))) == started


def test_what_somebody_has_had_is_parts() -> None:
    def excess(*held: object) -> float:
        world = state(node_info(), job(1, user="bob"), *held)  # type: ignore[arg-type]
        found = shares(world, NOW, Policy())
        return float(found.worst[world.table.class_id[world.table.rows["r1"]]])

    assert excess(running(1, "a0")) == pytest.approx(2 / 1.5)
    assert excess(running(1, "a0", gpu_share=20 * GIB)) == pytest.approx(1.25 / 1.125)
