"""Places for jobs that others were stopped for, by example."""

from dataclasses import replace
from typing import Any

from service.scheduler.model.decisions import Preempt
from service.scheduler.model.jobs import Running, TenantAccount, Waiting
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import decide
from tests.unit.service.scheduler.worlds import (
    GIB,
    HOUR,
    NOW,
    carry_out,
    job,
    known,
    node_info,
    running,
    slot,
    starts,
    state,
)
from torchyard.spec.policy import Policy

BIG = frozenset({"big"})


def choosy(number: int) -> Waiting:
    made = job(number)
    return replace(made, resources=replace(made.resources, labels=BIG))


def started(world: SchedulerState) -> dict[str, str]:
    return starts(decide(world, NOW, Policy()))


def test_the_only_place_that_suits_one_is_left_to_it() -> None:
    nodes = node_info("a", gpus=1, labels=BIG), node_info("b", gpus=1)
    world = state(*nodes, job(1), choosy(2), promised={"j1": None, "j2": None})
    assert started(world) == {"j2": "a0", "j1": "b0"}


def test_where_not_all_find_a_place_the_first_has_it() -> None:
    world = state(
        node_info("a", gpus=1, labels=BIG), job(1), choosy(2), job(3), promised=dict.fromkeys(("j1", "j2", "j3"))
    )
    assert started(world) == {"j1": "a0"}
    assert started(replace(world, nodes={**world.nodes, "b": node_info("b", gpus=1)})) == {"j1": "a0", "j3": "b0"}


#: A quarter of a GPU-day is left of eve's week.
WEEK = {"eve": TenantAccount(week_left_us=6 * HOUR)}


def eve(number: int, hours: int, gpus: int = 4, **fields: Any) -> Waiting:
    return job(number, gpus, user="eve", remaining=known(hours * HOUR), **fields)


def victim(number: int, node: str) -> Running:
    slots = [f"{node}{index}" for index in range(4)]
    return running(number, slots, user="bob", priority=0, preemptible=True)


def next_starts(world: SchedulerState) -> dict[str, str]:
    """What starts once those are gone whom a first decision stops."""
    first = decide(world, NOW, Policy())
    assert any(isinstance(one, Preempt) for one in first)
    carry_out(world, first, NOW)
    return started(world)


def test_who_starts_meanwhile_takes_no_quota_from_whom_others_were_stopped_for() -> None:
    world = state(
        node_info("a"), node_info("b", gpus=1), victim(1, "a"), eve(2, 1, priority=2), eve(3, 9, 1), users=WEEK
    )
    assert next_starts(world) == {"j2": "a0 a1 a2 a3"}
    assert "j3" in world.running


def test_what_was_left_for_two_together_is_enough_in_any_order() -> None:
    world = state(node_info("a"), node_info("b"), victim(1, "a"), victim(2, "b"), eve(3, 9), eve(4, 1), users=WEEK)
    assert set(next_starts(world)) == {"j3", "j4"}


def test_a_quota_that_is_used_up_withdraws_a_promise() -> None:
    world = state(node_info("a"), eve(1, 1), users={"eve": TenantAccount(week_left_us=0)}, promised={"j1": None})
    assert started(world) == {}


def test_one_is_placed_elsewhere_if_all_find_a_place_then() -> None:
    """No order would do: the first two nodes have the only GPUs left, of which one is too small for j2."""
    small, large = slot(1, "b", memory=16 * GIB), slot(0, "b")
    world = state(
        node_info("a", gpus=1),
        node_info("b", slots=(large, small)),
        job(1, nodes=2),
        job(2, gpu_memory_min=40 * GIB),
        promised={"j1": None, "j2": None},
    )
    assert started(world) == {"j1": "a0 b1", "j2": "b0"}
    other_way_round = replace(world, waiting={**world.waiting, "j2": replace(world.waiting["j2"], priority=2)})
    assert started(other_way_round) == {"j1": "a0 b1", "j2": "b0"}
