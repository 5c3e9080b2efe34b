"""Nobody waits for longer than the bound that the policy states, whatever else comes."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle

from hypothesis import given, settings
from hypothesis import strategies as st

from service.scheduler.order import PERIOD_US
from service.scheduler.state import State, Waiting
from tests.unit.service.scheduler.worlds import HOUR, MINUTE, NOW, SECOND, box, job, known, settle, state
from torchyard.policy import Policy

STEP = 10 * MINUTE
LONGEST = 2 * HOUR
POLICY = Policy(longest_wait="1h")

rivals = st.lists(
    st.builds(
        job,
        st.just(0),
        gpus=st.integers(1, 4),
        priority=st.integers(0, 2),
        preemptible=st.booleans(),
        user=st.sampled_from(["ann", "bob"]),
        ran_us=st.integers(1, LONGEST // STEP).map(lambda steps: steps * STEP),
        limit_us=st.sampled_from([None, LONGEST]),
        remaining=st.none() | st.just(known(HOUR)),
    ),
    min_size=1,
    max_size=12,
)


def endless(found: list[Waiting]) -> Iterator[tuple[Waiting, int]]:
    """Rivals without end, and how long each of them runs."""
    for number, rival in enumerate(cycle(found), start=100):
        yield replace(rival, job=f"j{number}", number=number, ran_us=0), rival.ran_us


def steps_until_started(world: State, target: str, found: list[Waiting], policy: Policy) -> int:
    """Keeps the queue full of rivals, and ends each when its time is over, until the target has started."""
    stream, lasts = endless(found), {}
    now = NOW
    for step in range(1000):
        ended = [name for name, one in world.running.items() if one.ran_us + now - one.since_us >= lasts.get(name, 0)]
        for name in ended:
            world.remove(name)
        while len(world.waiting) < 6:
            rival, lasts_us = next(stream)
            world.put([replace(rival, eligible_us=now)])
            lasts[rival.job] = lasts_us
        for moment in (now, now + policy.min_run * SECOND):
            settle(world, moment, policy)
            if target in world.running:
                return step
        now += STEP
    raise AssertionError("it never starts")


@settings(max_examples=25)
@given(rivals, st.integers(2, 4), st.integers(1, 2), st.booleans())
def test_the_oldest_starts_in_time(found: list[Waiting], gpus: int, nodes: int, preemptible: bool) -> None:
    """No rival that cannot be stopped runs for longer than L: `longest_wait`, L, and the time to the next turn."""
    world = state(box("a"), box("b"))
    target = job(1, gpus=gpus, nodes=nodes, priority=0, preemptible=preemptible, remaining=known(HOUR), user="eve")
    world.put([target])
    steps = steps_until_started(world, target.job, found, POLICY)
    assert steps * STEP <= POLICY.longest_wait * SECOND + LONGEST + PERIOD_US + 2 * STEP


@settings(max_examples=15)
@given(rivals, st.integers(2, 4))
def test_where_nobody_can_be_stopped_the_oldest_need_not_wait_for_a_turn(found: list[Waiting], gpus: int) -> None:
    world = state(box("a"), box("b"))
    target = job(1, gpus=gpus, priority=0, remaining=known(HOUR), user="eve")
    world.put([target])
    policy = POLICY.model_copy(update={"preemption": False, "time_slice": None})
    steps = steps_until_started(world, target.job, found, policy)
    assert steps * STEP <= policy.longest_wait * SECOND + LONGEST + 2 * STEP
