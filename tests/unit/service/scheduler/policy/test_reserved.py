"""Reservations and maintenance."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from service.scheduler.model.decisions import Cause, Preempt
from service.scheduler.model.jobs import ReservationInfo
from service.scheduler.model.nodes import ClosedReason
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import decide
from tests.unit.service.scheduler.worlds import (
    HOUR,
    MINUTE,
    NOW,
    carry_out,
    job,
    known,
    node_info,
    running,
    slot,
    starts,
    state,
    stops,
    worlds,
)
from torchyard.spec.policy import Policy

FAIR = Policy()


def reservation(starts_us: int = NOW, lasts_us: int = HOUR, **fields: Any) -> ReservationInfo:
    name = fields.pop("id", "res")
    return ReservationInfo(id=name, name=name, starts_us=starts_us, ends_us=starts_us + lasts_us, **fields)


def started(world: SchedulerState, now_us: int = NOW) -> dict[str, str]:
    return starts(decide(world, now_us, FAIR))


def test_during_it_only_its_users_and_projects_get_its_devices() -> None:
    for fields in ({"users": frozenset({"bob"})}, {"projects": frozenset({"speech"})}):
        r = reservation(gpus=3, **fields)
        mine = job(9, gpus=3, user="bob", project="speech")
        assert started(state(node_info(), r, job(1), job(2), mine)) == {"j1": "a0", "j9": "a1 a2 a3"}
        assert started(state(node_info(), r, job(1, gpus=2))) == {}
    over = reservation(NOW - 2 * HOUR, users=frozenset({"bob"}))
    assert started(state(node_info(), over, job(1, gpus=4))) == {"j1": "a0 a1 a2 a3"}


def test_before_it_those_that_end_in_time_or_can_be_stopped_fill_the_gap() -> None:
    r = reservation(NOW + HOUR, users=frozenset({"bob"}))
    short, told = job(1, limit_us=HOUR), job(2, remaining=known(50 * MINUTE))
    long, stoppable = job(3, limit_us=2 * HOUR), job(4, preemptible=True)
    assert set(started(state(node_info(), r, short, told, long, stoppable))) == {"j1", "j2", "j4"}
    near = reservation(NOW + MINUTE, users=frozenset({"bob"}))
    assert started(state(node_info(), near, stoppable)) == {}


def test_those_that_can_be_stopped_are_in_time_for_it() -> None:
    r = reservation(NOW + HOUR, users=frozenset({"bob"}), gpus=3)
    fixed, ends = running(1, "a0"), running(2, "a1", preemptible=True, remaining=known(10 * MINUTE))
    long, theirs = running(3, "a2", preemptible=True), running(4, "a3", user="bob", preemptible=True)
    world = state(node_info(), r, fixed, ends, long, theirs)
    assert decide(world, NOW, FAIR) == []
    notice_us = NOW + HOUR - FAIR.checkpoint_timeout * 1_000_000
    found = decide(world, notice_us, FAIR)
    assert found == [
        Preempt(job="r2", for_job="res", reason=Cause.RESERVATION),
        Preempt(job="r3", for_job="res", reason=Cause.RESERVATION),
    ]
    carry_out(world, found, notice_us)
    world.remove("r2")
    assert started(world, notice_us) == {}
    world.put([job(9, gpus=2, user="bob")])
    assert started(world, r.starts_us) == {"j9": "a1 a2"}


def test_maintenance_empties_nodes_for_everybody() -> None:
    r = reservation(NOW + HOUR, maintenance=True, nodes=frozenset({"a"}))
    infos = [node_info("a"), node_info("b", gpus=1)]
    cores = running(2, "", gpus=0, cpus=1, preemptible=True)
    world = state(*infos, r, running(1, "a0", preemptible=True), cores)
    assert stops(decide(world, r.starts_us, FAIR)) == {"r1": "res", "r2": "res"}
    assert started(state(*infos, r, job(1), job(2, cpus=1)), r.starts_us) == {"j1": "b0"}
    assert started(state(*infos, r, job(1, gpus=0, cpus=1, user="bob")), r.starts_us) == {"j1": ""}


def test_nobody_is_stopped_for_it_where_preemption_is_off() -> None:
    r = reservation(users=frozenset({"bob"}))
    world = state(node_info(), r, running(1, "a0", preemptible=True))
    assert decide(world, NOW, Policy(preemption=False)) == []


def test_devices_that_will_be_free_are_reserved_before_others() -> None:
    r = reservation(NOW + HOUR, users=frozenset({"bob"}), gpus=2)
    world = state(node_info(), r, running(1, "a3"), running(2, "a2", preemptible=True), job(1), job(2))
    assert started(world) == {}
    world.remove("r2")
    assert started(world) == {"j1": "a0"}


def test_what_its_own_jobs_have_counts() -> None:
    """Two reserved GPUs are two, whichever of them its jobs run on."""
    r = reservation(gpus=2, users=frozenset({"bob"}))
    for theirs, left in (("a0 a1", "a2 a3"), ("a2 a3", "a0 a1")):
        assert started(state(node_info(), r, running(1, theirs, user="bob"), job(2, gpus=2))) == {"j2": left}
    assert started(state(node_info(), r, running(1, "a0", user="bob"), job(2, gpus=2))) == {"j2": "a1 a2"}
    # Nobody is stopped elsewhere for the sake of a node on which some of them run.
    more = reservation(gpus=4, users=frozenset({"bob"}))
    own, other = running(1, "a0 a1", user="bob"), running(2, "a2 a3", preemptible=True)
    assert decide(state(node_info("a"), node_info("b"), more, own, other), NOW, FAIR) == []


def test_two_at_once_have_devices_of_their_own() -> None:
    one = reservation(users=frozenset({"bob"}), gpus=2, id="one")
    two = reservation(users=frozenset({"eve"}), gpus=2, id="two")
    world = state(node_info(), one, two, job(1), job(2, gpus=2, user="bob"), job(3, gpus=2, user="eve"))
    assert set(started(world)) == {"j2", "j3"}
    greedy = state(node_info(), one, two, job(2, gpus=3, user="bob"))
    assert started(greedy) == {}


def test_gpus_are_reserved_on_nodes_that_have_some() -> None:
    r = reservation(gpus=2, users=frozenset({"bob"}))
    cpus = node_info("c", slots=tuple(slot(i, "c", kind="cpu") for i in range(8)))
    assert started(state(node_info("a", gpus=2), cpus, r, job(1, gpus=8), job(2))) == {"j1": "c0 c1 c2 c3 c4 c5 c6 c7"}
    lost = node_info("a", gpus=2, closed=ClosedReason.UNREACHABLE)
    assert started(state(lost, cpus, r, job(1, gpus=8))) == {"j1": "c0 c1 c2 c3 c4 c5 c6 c7"}
    assert started(state(cpus, r, job(1, gpus=6), job(2))) == {"j1": "c0 c1 c2 c3 c4 c5"}


@given(worlds(10), st.integers(0, 4), st.sampled_from(["ann", "bob"]), st.booleans())
def test_what_is_reserved_goes_to_nobody_else(world: SchedulerState, gpus: int, user: str, maintenance: bool) -> None:
    """Of the devices that nobody held, as many are left as are reserved, or all: of GPUs, where there are any."""
    world.reservations = (reservation(gpus=gpus, users=frozenset({user}), maintenance=maintenance),)
    unit = "gpu" if any(info.unit == "gpu" for info in world.nodes.values()) else "cpu"
    counted = [capacity for capacity in world.capacities().values() if capacity.info.unit == unit]
    free = {uuid for capacity in counted for uuid in capacity.free}
    decisions = decide(world, NOW, FAIR)
    others = [name for name in starts(decisions) if maintenance or world.waiting[name].user != user]
    taken = {uuid for name in others for uuid in starts(decisions)[name].split()}
    held = sum(len(capacity.usable) - len(capacity.free) for capacity in counted)
    assert len(free - taken) >= min(len(free), gpus - held)
