"""What is derived stays true, whatever is put and removed."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from service.scheduler.model.nodes import Placement
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import decide
from service.scheduler.policy.order import order
from tests.unit.service.scheduler.worlds import HOUR, NOW, job, known, node_info, running, state, worlds
from torchyard.spec.policy import Policy


def fresh(world: SchedulerState) -> SchedulerState:
    """The same, derived anew."""
    return SchedulerState(
        nodes=world.nodes,
        waiting=dict(world.waiting),
        running=dict(world.running),
        users=world.users,
        projects=world.projects,
        caps=world.caps,
        promised=dict(world.promised),
    )


@given(worlds(), st.data())
def test_a_state_that_changed_decides_as_one_made_anew(world: SchedulerState, data: st.DataObject) -> None:
    world.capacities()
    for _ in range(data.draw(st.integers(0, 8))):
        names = sorted([*world.waiting, *world.running])
        if not names:
            break
        name = data.draw(st.sampled_from(names))
        if name in world.running and data.draw(st.booleans()):
            world.requeue(name, NOW)
        elif name in world.waiting and data.draw(st.booleans()):
            world.put([replace(world.waiting[name], user=data.draw(st.sampled_from(["ann", "joe"])))])
        else:
            world.remove(name)
    again = fresh(world)
    assert decide(world, NOW, Policy()) == decide(again, NOW, Policy())
    assert order(world, NOW, Policy()) == order(again, NOW, Policy())
    assert world.trials == again.trials


def test_a_job_that_starts_and_is_requeued_keeps_its_age_and_counts_its_time() -> None:
    world = state(node_info(), job(1, remaining=known(3 * HOUR), limit_us=4 * HOUR))
    started = world.start("j1", (Placement(node="a", uuids=("a0",)),), NOW)
    assert (started.since_us, started.ends_us, world.waiting) == (NOW, NOW + 4 * HOUR, {})
    again = world.requeue("j1", NOW + HOUR)
    assert (again.ran_us, again.eligible_us, again.remaining) == (HOUR, NOW, known(2 * HOUR))
    assert world.running == {}


def test_who_others_were_stopped_for_is_remembered_until_it_starts() -> None:
    world = state(
        node_info(), running(1, "a0", preempted_for="j9"), running(2, "a1", preempted_for="j9"), job(9, gpus=2)
    )
    world.put([replace(world.running["r1"], preempted_for=None)])
    assert list(world.promised) == []
    world.remove("r2")
    assert list(world.promised) == ["j9"]
    world.remove("j9")
    assert list(world.promised) == []


def test_nodes_that_change_or_leave_are_seen() -> None:
    world = state(node_info(gpus=1), running(1, "a0"), job(1))
    assert decide(world, NOW, Policy()) == []
    world.nodes = {"a": node_info(gpus=2)}
    assert [one.job for one in decide(world, NOW, Policy())] == ["j1"]
    world.nodes = {}
    assert decide(world, NOW, Policy()) == []


def test_more_jobs_users_and_shapes_than_there_was_room_for() -> None:
    many = [job(number, gpus=number % 7, user=f"user-{number}", cpus=number) for number in range(300)]
    world = state(node_info(), *many)
    for one in many[:290]:
        world.remove(one.job)
    world.put(replace(one, user="ann") for one in many[290:])
    assert decide(world, NOW, Policy()) == decide(fresh(world), NOW, Policy())
