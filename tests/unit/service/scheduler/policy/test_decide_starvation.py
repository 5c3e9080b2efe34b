"""Nobody waits for longer than the bound that the policy states, whatever else comes."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from service.scheduler.model.jobs import Waiting
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.order import PATIENCE, PERIOD_US
from tests.unit.service.scheduler.worlds import HOUR, MINUTE, NOW, SECOND, job, known, node_info, settle, state
from torchyard.spec.policy import Policy

STEP = 10 * MINUTE
LONGEST = 2 * HOUR
POLICY = Policy(longest_wait="1h")
#: When nodes are kept for a job at the latest, as no job runs for longer than `LONGEST`.
KEPT_AFTER = max(POLICY.longest_wait * SECOND, PATIENCE * LONGEST)

rivals = st.lists(
    st.builds(
        job,
        st.just(0),
        gpus=st.integers(1, 4),
        priority=st.integers(0, 2),
        preemptible=st.booleans(),
        restartable=st.booleans(),
        user=st.sampled_from(["ann", "bob"]),
        ran_us=st.integers(1, LONGEST // STEP).map(lambda steps: steps * STEP),
        limit_us=st.sampled_from([None, LONGEST]),
        remaining=st.none() | st.just(known(HOUR)),
    ),
    min_size=1,
    max_size=12,
)


def endless(found: list[Waiting]) -> Iterator[tuple[Waiting, int]]:
    """Rivals without end, and how long each of them runs; who can be stopped need not start over."""
    for number, rival in enumerate(cycle(found), start=100):
        restartable = rival.restartable and not rival.preemptible
        yield replace(rival, job=f"j{number}", number=number, ran_us=0, restartable=restartable), rival.ran_us


def begin_trials(world: SchedulerState, now: int, policy: Policy) -> None:
    """Those that have just started, and may start over, make their first step."""
    ends_us = now + (policy.time_slice or 0) * SECOND
    fresh = [one for one in world.running.values() if one.restartable and one.since_us == now]
    world.put([replace(one, starts_over=True, begun_us=now, trial_ends_us=ends_us) for one in fresh])


def end_trials(world: SchedulerState, now: int, lasts: dict[str, int]) -> None:
    """The steps of those whose trial ends now have told how long they will still run."""
    over = [one for one in world.running.values() if one.restartable and one.trial_ends_us == now]
    left = {one.job: lasts[one.job] - (now - one.since_us) for one in over}
    world.put([replace(one, remaining=replace(known(left[one.job]), as_of_us=now)) for one in over])


class Started(NamedTuple):
    """When each of those that waited started, in steps, and how often they were stopped meanwhile."""

    steps: dict[str, int]
    stops: int


def until_started(world: SchedulerState, found: list[Waiting], policy: Policy) -> Started:
    """Keeps the queue full of rivals, and ends each when its time is over, until all that waited have started. Of
    these, those that can be stopped are through within a turn.
    """
    stream, started, stops, running = endless(found), dict[str, int](), 0, set[str]()
    lasts = {job.job: 2 * STEP if job.preemptible else LONGEST for job in world.waiting.values()}
    targets, now = set(lasts), NOW
    for step in range(1000):
        ended = [name for name, one in world.running.items() if one.ran_us + now - one.since_us >= lasts.get(name, 0)]
        for name in ended:
            world.remove(name)
        running.difference_update(ended)
        while len(world.waiting) < 6:
            rival, lasts_us = next(stream)
            world.put([replace(rival, eligible_us=now)])
            lasts[rival.job] = lasts_us
        for moment in (now, now + policy.min_run * SECOND):
            end_trials(world, moment, lasts)
            settle(world, moment, policy)
            begin_trials(world, moment, policy)
            stops += len(running - world.running.keys())
            running = targets & world.running.keys()
            started |= {job: step for job in running if job not in started}
        if started.keys() == targets:
            return Started(started, stops)
        now += STEP
    raise AssertionError("it never starts")


@settings(max_examples=25)
@given(rivals, st.integers(2, 4), st.integers(1, 2), st.booleans())
def test_the_oldest_starts_in_time(found: list[Waiting], gpus: int, nodes: int, preemptible: bool) -> None:
    """No rival that cannot be stopped runs for longer than L: until its nodes are kept, twice L, and until a turn."""
    world = state(node_info("a"), node_info("b"))
    target = job(1, gpus=gpus, nodes=nodes, priority=0, preemptible=preemptible, remaining=known(HOUR), user="eve")
    world.put([target])
    (steps,) = until_started(world, found, POLICY).steps.values()
    assert steps * STEP <= KEPT_AFTER + 2 * LONGEST + PERIOD_US + 2 * STEP


targets = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 2), st.booleans()), min_size=2, max_size=4)


@settings(max_examples=15)
@given(rivals, targets)
def test_each_of_the_oldest_starts_in_time(found: list[Waiting], wanted: list[tuple[int, int, bool]]) -> None:
    """The bound of the policy for the k-th oldest, from the moment on at which it is overdue: each stop of an older one
    means one turn more.
    """
    world = state(node_info("a"), node_info("b"))
    for k, (gpus, nodes, preemptible) in enumerate(wanted, start=1):
        fields = {"priority": 0, "preemptible": preemptible, "remaining": known(HOUR), "user": "eve"}
        world.put([job(k, gpus=gpus, nodes=nodes, eligible_us=NOW - (9 - k) * SECOND, **fields)])
    a_turn = 2 * LONGEST + PERIOD_US + (POLICY.min_run + POLICY.checkpoint_timeout) * SECOND
    started = until_started(world, found, POLICY)
    for name, steps in started.steps.items():
        k = int(name.removeprefix("j"))
        assert steps * STEP <= KEPT_AFTER + k * a_turn + started.stops * PERIOD_US + 2 * STEP


@settings(max_examples=15)
@given(rivals, st.integers(2, 4))
def test_where_nobody_can_be_stopped_the_oldest_need_not_wait_for_a_turn(found: list[Waiting], gpus: int) -> None:
    world = state(node_info("a"), node_info("b"))
    target = job(1, gpus=gpus, priority=0, remaining=known(HOUR), user="eve")
    world.put([target])
    policy = POLICY.model_copy(update={"preemption": False, "time_slice": None})
    (steps,) = until_started(world, found, policy).steps.values()
    assert steps * STEP <= KEPT_AFTER + 2 * LONGEST + 2 * STEP
