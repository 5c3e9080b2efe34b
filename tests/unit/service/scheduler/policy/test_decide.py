"""The policy by example and by property."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from service.scheduler.model.decisions import CancelPreemption, Cause, Preempt, Start
from service.scheduler.model.jobs import EstimateSource, IneligibleReason, TenantAccount
from service.scheduler.model.nodes import ClosedReason
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import SchedulingPass, decide
from tests.unit.service.scheduler.worlds import (
    DAY,
    GIB,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    carry_out,
    check,
    job,
    known,
    node_info,
    policies,
    running,
    settle,
    starts,
    state,
    stops,
    worlds,
)
from torchyard.spec.policy import Order, Policy

FAIR = Policy()
FIFO = Policy(order=Order.FIFO, preemption=False, time_slice=None)


def started(world: SchedulerState, policy: Policy = FAIR) -> dict[str, str]:
    return starts(decide(world, NOW, policy))


def test_first_come_first_served_within_a_class() -> None:
    world = state(node_info(gpus=2), job(3), job(1), job(2, priority=0), job(4, priority=2))
    for policy in (FIFO, Policy()):
        assert list(started(world, policy)) == ["j4", "j1"]


def test_ineligible_jobs_are_passed_over() -> None:
    ineligible = [job(number, ineligible=ineligible) for number, ineligible in enumerate(IneligibleReason)]
    assert list(started(state(node_info(), *ineligible, job(9)))) == ["j9"]


def test_a_paused_queue_starts_and_preempts_nothing() -> None:
    for world in (
        state(node_info(), job(1)),
        state(node_info(gpus=1), job(1, priority=3), running(2, "a0", priority=0, preemptible=True)),
    ):
        assert decide(world, NOW, FAIR)
        world.paused = "replacing a fan"
        assert decide(world, NOW, FAIR) == []


def test_a_pause_lets_those_go_on_that_were_being_preempted() -> None:
    world = state(
        node_info(gpus=1), job(1, priority=3), running(2, "a0", priority=0, preemptible=True, preempted_for="j1")
    )
    world.paused = "replacing a fan"
    assert decide(world, NOW, FAIR) == [CancelPreemption(for_job="j1")]


def test_closed_nodes_take_nothing() -> None:
    for closed in ClosedReason:
        assert started(state(node_info(closed=closed), job(1))) == {}


def test_strict_order_without_backfill() -> None:
    world = state(node_info(gpus=4), running(1, "a0"), job(1, gpus=4), job(2))
    assert started(world, FIFO.model_copy(update={"backfill": False})) == {}
    world.put([replace(job(2), priority=2)])
    assert list(started(world, FIFO.model_copy(update={"backfill": False}))) == ["j2"]


def test_a_big_job_is_not_overtaken_on_the_node_kept_for_it() -> None:
    world = state(
        node_info("a"), node_info("b", gpus=2), running(1, "a0"), job(1, gpus=4), job(2), job(3, gpus=2), job(4)
    )
    assert started(world, FIFO) == {"j2": "b0", "j4": "b1"}


def test_those_that_end_in_time_fill_the_gap() -> None:
    first = running(1, "a0", remaining=known(HOUR))
    short, long = job(2, limit_us=HOUR), job(3, limit_us=2 * HOUR)
    told = job(4, remaining=known(50 * MINUTE))
    world = state(node_info(), first, job(1, gpus=4), long, short, told, job(5))
    assert started(world, FIFO) == {"j2": "a1", "j4": "a2"}


def test_jobs_that_can_be_stopped_again_fill_the_gap() -> None:
    world = state(
        node_info(), running(1, "a0"), job(1, gpus=4, remaining=known(HOUR)), job(2, preemptible=True), job(3)
    )
    policy = Policy(order=Order.FIFO)
    assert started(world, policy) == {"j2": "a1"}


def test_what_is_kept_for_the_first_is_kept_from_the_oldest_as_well() -> None:
    """One node is kept for the oldest, the other for the first, who can stop nobody: its user had too much."""
    users = {"ann": TenantAccount(usage=1e6, usage_us=NOW), "bob": TenantAccount()}
    first = job(1, user="ann", remaining=known(MINUTE), ran_us=HOUR)
    oldest = job(2, user="bob", remaining=known(2 * HOUR), eligible_us=NOW - 5 * DAY)
    other = running(8, "a0", user="bob", preemptible=True, remaining=known(10 * HOUR))
    greedy = running(9, "b0", user="ann", preemptible=True, remaining=known(30 * MINUTE))
    world = state(node_info("a", gpus=1), node_info("b", gpus=1), other, greedy, first, oldest, users=users)
    policy = Policy(time_slice=None)
    assert decide(world, NOW, policy) == []
    world.remove("j1")
    assert stops(decide(world, NOW, policy)) == {"r9": "j2"}


def test_a_new_job_is_tried_at_once_in_the_place_of_the_longest() -> None:
    long = running(1, "a0", preemptible=True, remaining=known(9 * HOUR))
    short = running(2, "a1", preemptible=True, remaining=known(2 * HOUR))
    world = state(node_info(gpus=2), long, short, job(3))
    decisions = decide(world, NOW, Policy())
    assert decisions == [Preempt(job="r1", for_job="j3", reason=Cause.TIME_SLICE)]
    carry_out(world, decisions, NOW)
    assert started(world) == {"j3": "a0"}


def test_what_runs_is_let_run_without_slices_and_while_it_is_new() -> None:
    long = running(1, "a0", preemptible=True, remaining=known(9 * HOUR))
    for spared in (
        replace(long, since_us=NOW - 30 * SECOND),
        replace(long, spared_until_us=NOW + 1),
        replace(long, preemptible=False),
        replace(long, preempted_for="somebody"),
        replace(long, starts_over=True),
        replace(long, remaining=known(20 * SECOND)),
    ):
        assert decide(state(node_info(gpus=1), spared, job(2)), NOW, Policy()) == []
    assert decide(state(node_info(gpus=1), long, job(2)), NOW, Policy(time_slice=None)) == []


def test_who_must_not_be_stopped_takes_no_time_slices() -> None:
    long = running(1, "a0", preemptible=True, remaining=known(9 * HOUR))
    new, short = job(2, pinned=True), job(3, pinned=True, remaining=known(MINUTE, EstimateSource.HISTORY))
    for policy in (Policy(), Policy(order=Order.SRTF), Policy(order=Order.LAS)):
        assert decide(state(node_info(gpus=1), long, new, short), NOW, policy) == []
        assert list(started(state(node_info(gpus=2), long, new), policy)) == ["j2"]
    had = replace(long, ran_us=2 * HOUR)
    for order in (Order.FAIR, Order.LAS):
        decisions = decide(state(node_info(gpus=1), had, new, job(4, preemptible=True)), NOW, Policy(order=order))
        assert decisions == [Preempt(job="r1", for_job="j4", reason=Cause.TIME_SLICE)]
    urgent = replace(new, priority=2)
    assert decide(state(node_info(gpus=1), long, urgent), NOW, FAIR) == [
        Preempt(job="r1", for_job="j2", reason=Cause.CLASS)
    ]


def test_the_clearly_shorter_takes_the_place_of_the_longer() -> None:
    long = running(1, "a0", preemptible=True, remaining=known(60 * MINUTE), eligible_us=NOW)
    for minutes, expected in ((40, {"r1": "j2"}), (55, {}), (60, {}), (90, {})):
        tried = job(2, remaining=known(minutes * MINUTE), ran_us=MINUTE)
        assert stops(decide(state(node_info(gpus=1), long, tried), NOW, Policy())) == expected


def test_a_higher_class_stops_a_lower_one_by_the_least_work_since_its_checkpoint() -> None:
    old = running(1, "a0", preemptible=True, saved_us=NOW - 50 * MINUTE)
    fresh = running(2, "a1", preemptible=True, saved_us=NOW - MINUTE)
    policy = Policy(time_slice=None)
    urgent = job(3, priority=2, remaining=known(9 * HOUR))
    assert decide(state(node_info(gpus=2), old, fresh, urgent), NOW, policy) == [
        Preempt(job="r2", for_job="j3", reason=Cause.CLASS)
    ]
    assert decide(state(node_info(gpus=2), old, fresh, urgent), NOW, Policy(time_slice=None, preemption=False)) == []


def test_who_is_over_their_share_makes_room_for_who_is_under_it() -> None:
    users = {"ann": TenantAccount(usage=1e6, usage_us=NOW), "bob": TenantAccount()}
    greedy = running(1, "a0", user="ann", preemptible=True, remaining=known(HOUR))
    world = state(node_info(gpus=1), greedy, job(2, user="bob", remaining=known(2 * HOUR), ran_us=HOUR), users=users)
    policy = Policy(time_slice=None)
    assert decide(world, NOW, policy) == [Preempt(job="r1", for_job="j2", reason=Cause.SHARE)]
    world.users = {}
    assert decide(world, NOW, policy) == []


def test_of_those_over_their_share_one_goes_that_stops_no_others_in_turn() -> None:
    users = {"ann": TenantAccount(usage=1e6, usage_us=NOW), "bob": TenantAccount()}
    greedy = [
        running(number, f"a{number}", user="ann", preemptible=True, remaining=known(left_us), saved_us=saved_us)
        for number, left_us, saved_us in ((0, 20 * SECOND, NOW), (1, HOUR, NOW - MINUTE), (2, 9 * HOUR, NOW - HOUR))
    ]
    world = state(node_info(gpus=3), *greedy, job(3, user="bob"), users=users)
    decisions = decide(world, NOW, FAIR)
    assert decisions == [Preempt(job="r2", for_job="j3", reason=Cause.TIME_SLICE)]
    carry_out(world, decisions, NOW)
    settle(world, NOW, FAIR)
    assert set(world.running) == {"r0", "r1", "j3"}
    soon = {"remaining": known(5 * SECOND, EstimateSource.HISTORY)}
    world = state(node_info(gpus=2), *greedy[:2], job(3, user="bob", pinned=True, **soon), users=users)
    assert decide(world, NOW, FAIR) == [Preempt(job="r0", for_job="j3", reason=Cause.SHARE)]


def test_nobody_is_stopped_if_the_preemptor_would_not_start() -> None:
    fixed = running(1, "a0 a1")
    movable = running(2, "a2 a3", preemptible=True)
    assert decide(state(node_info(), fixed, movable, job(3, gpus=4, priority=2)), NOW, Policy()) == []
    short = node_info(cpus=4)
    assert decide(state(short, running(1, "", cpus=4), job(3, cpus=2, priority=2)), NOW, Policy()) == []


def test_nobody_slips_in_beside_those_who_make_room_for_a_whole_gpu() -> None:
    sharing = running(1, "a0", preemptible=True, gpu_share=10 * GIB)
    world = state(node_info(gpus=1), sharing, job(2, priority=2), job(3, gpu_share=10 * GIB))
    assert decide(world, NOW, FAIR) == [Preempt(job="r1", for_job="j2", reason=Cause.CLASS)]


def test_no_more_are_stopped_than_needed() -> None:
    one, two = running(1, "a0", preemptible=True), running(2, "a1 a2", preemptible=True, saved_us=NOW)
    three = running(3, "a3", preemptible=True, saved_us=NOW - MINUTE)
    found = decide(state(node_info(), one, two, three, job(4, gpus=2, priority=2)), NOW, Policy())
    assert stops(found) == {"r2": "j4"}


def test_one_job_is_stopped_rather_than_four_that_are_as_long() -> None:
    small = [running(number, f"a{number}", preemptible=True, remaining=known(8 * HOUR)) for number in range(4)]
    for hours, expected in ((8, {"r9"}), (6, {"r9"}), (3, {"r0", "r1", "r2", "r3"})):
        large = running(9, "b0 b1 b2 b3", preemptible=True, remaining=known(hours * HOUR))
        world = state(node_info("a"), node_info("b"), *small, large, job(10, gpus=4))
        assert stops(decide(world, NOW, FAIR)).keys() == expected


def test_a_gang_stops_what_it_needs_on_all_its_nodes_or_nobody() -> None:
    infos = [node_info("a", gpus=2), node_info("b", gpus=2)]
    left, right = running(1, "a0 a1", preemptible=True), running(2, "b0 b1", preemptible=True)
    gang = job(3, gpus=2, nodes=2, priority=2)
    assert stops(decide(state(*infos, left, right, gang), NOW, Policy())) == {"r1": "j3", "r2": "j3"}
    assert decide(state(*infos, left, replace(right, preemptible=False), gang), NOW, Policy()) == []


def test_places_are_kept_for_the_preemptor_until_all_victims_are_gone() -> None:
    one, two = (
        running(1, "a0", preemptible=True, preempted_for="j9"),
        running(2, "a1", preemptible=True, preempted_for="j9"),
    )
    preemptor = job(9, gpus=2, priority=2)
    world = state(node_info(gpus=2), one, two, preemptor, job(3, priority=2))
    assert decide(world, NOW, Policy()) == []
    world.requeue("r1", NOW)
    assert decide(world, NOW, Policy()) == []
    world.requeue("r2", NOW)
    world.put([job(4, priority=2)])
    assert started(world) == {"j9": "a0 a1"}
    world.remove("j9")
    assert set(started(world)) == {"j3", "j4"}


def test_places_that_nobody_waits_for_any_more_are_free_for_all() -> None:
    gone = running(1, "a0", preemptible=True, preempted_for="j9")
    world = state(node_info(gpus=2), gone, job(3))
    assert started(world) == {"j3": "a1"}


def test_a_job_over_its_quota_blocks_nobody() -> None:
    users = {"ann": TenantAccount(max_gpus=2)}
    world = state(node_info(gpus=4), running(1, "a0"), job(1, gpus=2), job(2), job(3), job(4, user="bob"), users=users)
    assert started(world, FIFO) == {"j2": "a1", "j4": "a2"}


def test_the_week_and_the_cap_of_a_sweep_bound_what_starts() -> None:
    projects = {"vision": TenantAccount(week_left_us=HOUR), "speech": TenantAccount(week_left_us=2 * HOUR)}
    world = state(node_info(gpus=8), running(1, "a0"), job(1), job(2, project="speech"), projects=projects)
    assert started(world, FIFO) == {"j2": "a1"}
    trials = [job(number, group="s") for number in range(5)]
    assert len(started(state(node_info(gpus=8), running(1, "a0", group="s"), *trials, caps={"s": 3}), FIFO)) == 2


def test_of_a_long_run_only_the_last_seven_days_count() -> None:
    fractions = (node_info(), running(1, "a0", since_us=NOW - 30 * DAY), job(2))
    assert started(state(*fractions, users={"ann": TenantAccount(week_left_us=7 * DAY + HOUR)})) == {"j2": "a1"}
    assert started(state(*fractions, users={"ann": TenantAccount(week_left_us=7 * DAY)})) == {}


def test_what_starts_together_does_not_pass_the_week() -> None:
    users = {"ann": TenantAccount(week_left_us=3 * HOUR)}
    jobs = [job(number, remaining=known(2 * HOUR)) for number in range(4)]
    assert len(started(state(node_info(gpus=8), *jobs, users=users), FIFO)) == 2


def test_who_is_over_a_quota_by_now_blocks_nobody() -> None:
    """The sweep's one trial starts before it is the turn of the next, which could not start anyway."""
    trials = (job(1, group="sweep"), job(2, gpus=3, group="sweep"))
    world = state(node_info(gpus=3), running(9, "a0"), *trials, job(3), caps={"sweep": 1})
    assert started(world, FIFO.model_copy(update={"backfill": False})) == {"j1": "a1", "j3": "a2"}


def test_tiresias_stops_the_second_queue_for_the_first() -> None:
    policy = Policy(order=Order.LAS)
    second = running(1, "a0", preemptible=True, since_us=NOW - 2 * HOUR)
    first = running(2, "a0", preemptible=True, since_us=NOW - HOUR // 2)
    assert stops(decide(state(node_info(gpus=1), second, job(3)), NOW, policy)) == {"r1": "j3"}
    assert decide(state(node_info(gpus=1), first, job(3)), NOW, policy) == []


def test_a_class_higher_for_each_day_of_waiting_up_to_the_highest_there_is() -> None:
    old = job(1, priority=0, eligible_us=NOW - DAY, remaining=known(HOUR), ran_us=0)
    new = job(2, priority=1, remaining=known(HOUR))
    assert list(started(state(node_info(gpus=1), old, new))) == ["j1"]
    assert list(started(state(node_info(gpus=1), replace(old, eligible_us=NOW - HOUR), new))) == ["j2"]
    shorter = job(3, remaining=known(MINUTE))
    assert list(started(state(node_info(gpus=1), replace(old, priority=1), shorter))) == ["j3"]


@given(worlds(), policies)
def test_nothing_is_given_twice_or_beyond_what_is_there(world: SchedulerState, policy: Policy) -> None:
    check(world)
    before = {node: (capacity.cpus, capacity.memory) for node, capacity in world.capacities().items()}
    decisions = decide(world, NOW, policy)
    for one in decisions:
        if isinstance(one, Start):
            resources = world.waiting[one.job].resources
            for placement in one.placements:
                slots = {slot.uuid: slot for slot in world.nodes[placement.node].slots}
                assert all(slots[uuid].suits(resources) and not slots[uuid].unusable for uuid in placement.uuids)
                assert resources.labels <= world.nodes[placement.node].labels
                assert world.nodes[placement.node].isolates or not resources.isolated
                assert world.nodes[placement.node].knows_secrets or not resources.secrets
                assert world.nodes[placement.node].knows_warm_start or not resources.cold
                assert placement.node not in resources.excluded_nodes
            if resources.gpus:
                assert len({world.nodes[placement.node].word for placement in one.placements}) == 1
    carry_out(world, [one for one in decisions if isinstance(one, Start)], NOW)
    check(world)
    for node, capacity in world.capacities().items():
        assert capacity.cpus >= min(before[node][0], 0)
        assert capacity.memory >= min(before[node][1], 0)


def given_out(world: SchedulerState, accounts: str) -> Counter[str]:
    """GPUs that each user or project holds."""
    held: Counter[str] = Counter()
    for one in world.running.values():
        held[getattr(one, accounts)] += one.gpus
    return held


@given(worlds(), policies)
def test_quotas_are_never_passed(world: SchedulerState, policy: Policy) -> None:
    after = world.copy()
    carry_out(after, [one for one in decide(world, NOW, policy) if isinstance(one, Start)], NOW)
    for party, accounts in (("user", world.users), ("project", world.projects)):
        before, now = given_out(world, party), given_out(after, party)
        for name, account in accounts.items():
            assert account.max_gpus is None or now[name] <= max(before[name], account.max_gpus)
            assert account.week_left_us != 0 or now[name] <= before[name]
    for sweep, cap in world.caps.items():
        assert after.trials.get(sweep, 0) <= max(world.trials.get(sweep, 0), cap)


@settings(max_examples=500)
@given(worlds(), policies)
def test_preemption_is_never_for_nothing(world: SchedulerState, policy: Policy) -> None:
    """With the victims gone, whom they were stopped for starts in the next decision."""
    decisions = decide(world, NOW, policy)
    victims = [one for one in decisions if isinstance(one, Preempt)]
    assert len({one.job for one in victims}) == len(victims)
    after = world.copy()
    carry_out(after, decisions, NOW)
    starting = starts(decide(after, NOW, policy))
    for one in victims:
        assert one.for_job in starting


@given(worlds(), policies)
def test_whom_others_are_stopped_for_has_its_places_once_these_are_gone(world: SchedulerState, policy: Policy) -> None:
    this = SchedulingPass(world, NOW, policy)
    decisions = this.run()
    of_jobs = [one for one in decisions if not (isinstance(one, Preempt) and one.reason is Cause.RESERVATION)]
    assert set(this.promises) == set(stops(of_jobs).values())
    carry_out(world, of_jobs, NOW)
    for name, placements in this.promises.items():
        world.start(name, placements, NOW)
    check(world)


@settings(max_examples=500)
@given(worlds(), policies)
def test_decisions_come_to_rest(world: SchedulerState, policy: Policy) -> None:
    settle(world, NOW, policy)
    check(world)


@given(worlds(), policies, st.randoms(use_true_random=False))
def test_the_order_in_which_things_are_told_does_not_matter(
    world: SchedulerState, policy: Policy, random: object
) -> None:
    expected = decide(world, NOW, policy)
    jobs = [*world.waiting.values(), *world.running.values()]
    random.shuffle(jobs)  # type: ignore[attr-defined]
    nodes = list(world.nodes.items())
    random.shuffle(nodes)  # type: ignore[attr-defined]
    again = SchedulerState(nodes=dict(nodes), users=world.users, projects=world.projects, caps=world.caps)
    again.put(jobs)
    assert decide(again, NOW, policy) == expected
    assert decide(again, NOW, policy) == expected
