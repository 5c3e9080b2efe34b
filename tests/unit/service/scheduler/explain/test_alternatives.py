"""What would start a job now: each change is one that the policy then really starts."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.scheduler.explain import alternatives
from service.scheduler.explain.alternatives import Proposal, StartingChange
from service.scheduler.explain.forecast import Expected, expected_start
from service.scheduler.model.decisions import Start
from service.scheduler.model.jobs import IneligibleReason, ReservationInfo, TenantAccount, Waiting
from service.scheduler.model.nodes import ClosedReason
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import decide
from tests.support.sharing import GIB, HOUR, MINUTE, NOW, node, runs, state, waits
from torchyard.quantities import parse_size
from torchyard.spec import PRIORITY_RANK, Priority
from torchyard.spec.policy import Policy

CALM = Policy(preemption=False, time_slice=None)
SHAPE = {"gpus", "gpu_memory_min", "gpu_share", "gpu_type", "labels", "cpus", "memory"}
NOTHING: dict[str, Any] = {"gpu_type": "", "labels": frozenset()}


def changed(waiting: Waiting, proposal: Proposal) -> Waiting:
    """As the service makes it from a changed spec."""
    for path, value in proposal.change.items():
        field = path.removeprefix("resources.")
        match field:
            case "priority":
                waiting = replace(waiting, priority=PRIORITY_RANK[Priority(value)])
            case "time_limit":
                waiting = replace(waiting, limit_us=value * 1_000_000)
            case "restartable":
                waiting = replace(waiting, preemptible=value)
            case "preemptible":
                waiting = replace(waiting, preemptible=bool(value), pinned=False)
            case "held":
                waiting = replace(waiting, ineligible=None)
            case "nodes":
                waiting = replace(waiting, nodes=value)
            case _:
                assert field in SHAPE
                size = parse_size(value) if isinstance(value, str) else value
                asked: dict[str, Any] = {field: NOTHING[field] if value is None else size}
                waiting = replace(waiting, resources=replace(waiting.resources, **asked))
    return waiting


def find(made: SchedulerState, policy: Policy = CALM, *, refused: frozenset[str] = frozenset()) -> list[StartingChange]:
    def build(proposal: Proposal) -> Waiting | None:
        known = set(map(str, proposal.change.values())) | proposal.change.keys()
        return None if refused & known else changed(made.waiting["j1"], proposal)

    expected = expected_start(made, "j1", NOW, policy)
    return alternatives.find(made, "j1", NOW, policy, build, expected)


def now(made: SchedulerState, policy: Policy = CALM) -> list[dict[str, Any]]:
    return [each.proposal.change for each in find(made, policy) if each.placements]


THREE = ("a0", "a1", "a2")


def test_fewer_gpus() -> None:
    assert {"resources.gpus": 1} in now(state(waits(1, 4), runs(2, *THREE)))
    assert {"resources.gpus": 3} in now(state(waits(1, 4), runs(2, "a0"))), "as many as there are"


def test_a_shared_card() -> None:
    sharing = runs(2, "a0", gpu_share=30 * GIB)
    assert now(state(waits(1), sharing, nodes=(node(gpus=1),))) == [{"resources.gpu_share": "50GiB"}]
    whole = runs(2, "a0")
    assert now(state(waits(1), whole, nodes=(node(gpus=1),))) == [], "nobody shares with a job that has the card alone"
    needy = waits(1, gpu_memory_min=60 * GIB)
    assert now(state(needy, sharing, nodes=(node(gpus=1),))) == [], "not less than it says that it needs"


def test_a_smaller_share() -> None:
    sharing = runs(2, "a0", gpu_share=70 * GIB)
    found = now(state(waits(1, gpu_share=20 * GIB), sharing, nodes=(node(gpus=1),)))
    assert found == [{"resources.gpu_share": "10GiB"}]


def backfilled() -> SchedulerState:
    """A job of four GPUs waits for two that are over in half an hour; two are free meanwhile."""
    first = waits(0, 4, priority=2)
    return state(first, waits(1, 1, minutes=60), runs(2, "a0", "a1", minutes=15, ends_us=NOW + 30 * MINUTE))


def test_a_shorter_limit_that_fits_into_a_hole() -> None:
    made = backfilled()
    short = replace(made.waiting["j1"], remaining=None)
    made.put([short])
    assert {"time_limit": 900} in now(made), "half an hour would just fit now, and not a moment later"
    made.put([replace(short, remaining=waits(1, minutes=45).remaining)])
    assert not any("time_limit" in change for change in now(made)), "half of its like need more"


def test_what_is_restartable_fills_a_reservation() -> None:
    reserved = ReservationInfo(
        id="r", name="demo", starts_us=NOW + HOUR, ends_us=NOW + 2 * HOUR, users=frozenset({"eve"})
    )
    policy = Policy(time_slice=None)
    found = now(state(waits(1, minutes=None), reservations=(reserved,)), policy)
    assert {"restartable": True} in found
    assert {"time_limit": 1800} in found


def test_what_may_be_stopped_after_all() -> None:
    full = [runs(2, "a0", "a1", "a2", "a3", minutes=600, preemptible=True)]
    pinned = replace(waits(1, minutes=None), pinned=True)
    (much_sooner,) = [
        each for each in find(state(pinned, *full), Policy(preemption=False)) if "preemptible" in each.proposal.change
    ]
    assert much_sooner.proposal.change == {"preemptible": True}
    assert much_sooner.starts_us is not None
    assert much_sooner.starts_us <= NOW + MINUTE
    reserved = ReservationInfo(
        id="r", name="demo", starts_us=NOW + HOUR, ends_us=NOW + 2 * HOUR, users=frozenset({"eve"})
    )
    found = now(state(pinned, reservations=(reserved,)), Policy(time_slice=None))
    assert {"preemptible": True} in found
    assert {"restartable": True} not in found


def test_other_gpus_and_nodes() -> None:
    nodes = (node("a", 1, kind="H100"), node("b", 1, memory=40))
    made = state(waits(1, gpu_type="h100"), runs(2, "a0"), nodes=nodes)
    assert now(made) == [{"resources.gpu_type": None}]
    made = state(waits(1, gpu_memory_min=80 * GIB), runs(2, "a0"), nodes=nodes)
    assert now(made) == [{"resources.gpu_memory_min": "40GiB"}]
    labelled = (replace(nodes[0], labels=frozenset({"fast"})), nodes[1])
    made = state(waits(1, labels=frozenset({"fast"})), runs(2, "a0"), nodes=labelled)
    assert now(made) == [{"resources.labels": None}]


def test_nodes() -> None:
    two = (node("a", 4), node("b", 4))
    spread = state(waits(1, 2, nodes=2), runs(2, "b0", "b1", "b2"), nodes=two)
    assert {"resources.nodes": 1, "resources.gpus": 4} in now(spread)
    whole = state(waits(1, 4), runs(2, "a0", "a1"), runs(3, "b0", "b1"), nodes=two)
    assert {"resources.nodes": 2, "resources.gpus": 2} in now(whole)


def test_cores_and_memory() -> None:
    busy = runs(2, "a0")
    busy = replace(busy, resources=replace(busy.resources, cpus=30, memory=200 * GIB))
    assert now(state(waits(1, cpus=4), busy)) == [{"resources.cpus": 2}]
    assert now(state(waits(1, memory=100 * GIB), busy)) == [{"resources.memory": "56GiB"}]


def test_priority_where_it_helps_and_is_allowed() -> None:
    made = state(waits(0, 4, priority=2), waits(1, 3), runs(2, "a0"))
    found = find(made)
    assert next(each.proposal.change for each in found if each.placements) == {"priority": "high"}
    assert not any("priority" in each.proposal.change for each in find(made, refused=frozenset({"high", "urgent"})))


def test_a_held_job_can_be_released() -> None:
    assert now(state(waits(1, ineligible=IneligibleReason.HELD))) == [{"held": False}]
    assert now(state(waits(1, ineligible=IneligibleReason.HELD), runs(2, "a0", *THREE[1:], "a3"))) == []
    assert now(state(waits(1, ineligible=IneligibleReason.DEPENDENCY))) == []


def test_nothing_helps_against_a_quota_but_fewer_gpus() -> None:
    users = {"ada": TenantAccount(max_gpus=3)}
    made = state(waits(1, 2), runs(2, "a0", "a1", user="ada"), users=users)
    assert now(made) == [{"resources.gpus": 1}]


def test_closed_nodes_give_nothing() -> None:
    assert find(state(waits(1), nodes=(node(closed=ClosedReason.DRAINING),))) == []


def test_what_is_only_sooner_says_when() -> None:
    made = state(waits(1, 4), runs(2, "a0", "a1", "a2", minutes=10), runs(3, "a3", minutes=300))
    (fewer, *_) = find(made)
    assert (fewer.proposal.change, fewer.placements) == ({"resources.gpus": 1}, ())
    assert fewer.starts_us == NOW + 10 * MINUTE
    assert find(state(waits(1, 4), runs(2, *THREE, "a3", minutes=60))) == [], "not sooner"


def test_the_number_of_tries_is_bounded() -> None:
    made = state(waits(1, 64), runs(2, *THREE), nodes=(node(gpus=64),))
    trials = alternatives._Trials(made, made.waiting["j1"], NOW, CALM, lambda _: made.waiting["j1"])
    proposal = Proposal(change={"resources.gpus": 1}, words="")
    for _ in range(alternatives.MAX_TRIES):
        trials.now(proposal)
    trials._build = lambda p: changed(made.waiting["j1"], p)
    assert trials.now(proposal) is None


running = st.lists(st.sampled_from(["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"]), unique=True, max_size=8)
queued = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.booleans()), max_size=4)


@given(running, queued, st.integers(1, 4), st.integers(1, 2), st.none() | st.floats(1, 500), st.booleans())
def test_every_claim_comes_true(
    held: list[str],
    others: list[tuple[int, int, bool]],
    gpus: int,
    nodes: int,
    minutes: float | None,
    calm: bool,
) -> None:
    policy = CALM if calm else Policy()
    made = state(
        waits(1, gpus, minutes, nodes=nodes),
        *(waits(n, g, priority=p, preemptible=stop) for n, (g, p, stop) in enumerate(others, 2)),
        *(runs(n, device, preemptible=n % 2 == 0) for n, device in enumerate(held, 20)),
        nodes=(node("a"), node("b")),
    )
    for found in find(made, policy):
        if not found.placements:
            assert found.starts_us is not None
            assert found.starts_us > NOW
            continue
        tried = state(*made.waiting.values(), *made.running.values(), nodes=(node("a"), node("b")))
        waiting = changed(made.waiting["j1"], found.proposal)
        if not found.proposal.in_place:
            tried.remove("j1")
            waiting = replace(waiting, job="new", number=99, eligible_us=NOW)
        tried.put([waiting])
        starts = {d.job: d.placements for d in decide(tried, NOW, policy) if isinstance(d, Start)}
        assert starts[waiting.job] == found.placements


def test_a_job_of_unknown_start_may_be_told_any() -> None:
    made = state(waits(1, 4), runs(2, *THREE, minutes=10), runs(3, "a3", minutes=None))
    assert expected_start(made, "j1", NOW, CALM) == Expected(None, None)
    assert [each.proposal.change for each in find(made)][:1] == [{"resources.gpus": 1}]


@pytest.mark.parametrize("priority", list(Priority))
def test_only_higher_priorities_are_proposed(priority: Priority) -> None:
    made = state(waits(1, 4, priority=PRIORITY_RANK[priority]), runs(2, *THREE))
    kinds = [kind for kind in alternatives._kinds(made, made.waiting["j1"]) if "priority" in kind[0].change]
    proposed = [each.change["priority"] for kind in kinds for each in kind]
    assert proposed == [each.value for each in Priority if PRIORITY_RANK[each] > PRIORITY_RANK[priority]]
