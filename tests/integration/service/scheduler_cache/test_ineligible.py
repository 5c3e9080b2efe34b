"""What keeps trials of a sweep back, in passes over a real database: its cap, and its pause."""

from collections.abc import Iterator

import pytest
from sqlalchemy import func, select

from service import lifecycle
from service.controllers.scheduling import Scheduler
from service.db.leader import Leader
from service.db.models import Allocation, Attempt, Job
from service.infra.observability import Counters
from service.jobs import group_actions
from tests.support import box, submissions
from tests.support.recorded_context import RecordedContext
from torchyard import api
from torchyard.states import JobState, StopReason

CAP, TRIALS = 2, 5


@pytest.fixture
def scheduler(made: RecordedContext) -> Iterator[Scheduler]:
    leader = Leader(made.ctx.db)
    yield Scheduler(made.ctx, leader, Counters())
    leader.resign()


def holders(made: RecordedContext, group: api.Group) -> dict[str, str]:
    """Trials that hold GPUs, with their attempts."""
    query = (
        select(Job.id, Attempt.id)
        .join_from(Allocation, Attempt, Attempt.id == Allocation.attempt_id)
        .join(Job, Job.id == Attempt.job_id)
        .where(Allocation.live, Job.group_id == group.id)
    )
    with made.ctx.db.read() as tx:
        return {row[0]: row[1] for row in tx.execute(query)}


def ends(made: RecordedContext, attempt: str, **result: object) -> None:
    """An attempt starts if it has not, and ends."""
    now = made.ctx.now_us()
    with made.ctx.db.write() as tx:
        if tx.scalar(select(Attempt.state).where(Attempt.id == attempt)) == "assigned":
            lifecycle.claim(tx, attempt, "box", "nonce", now)
            lifecycle.mark_running(tx, attempt, now)
    box.finish(made.ctx.db, attempt, **result)


def rests(made: RecordedContext, scheduler: Scheduler) -> int:
    """Passes until nothing more starts; how many jobs did."""
    started = 0
    while found := scheduler.run_pass():
        started += found
        made.clock.sleep(1)
    made.clock.sleep(1)
    return started


def test_never_more_trials_than_the_cap_hold_gpus_and_the_next_starts_when_one_ends(
    made: RecordedContext, scheduler: Scheduler
) -> None:
    group = submissions.sweep(made.ctx, sweep={"parameters": {"env.N": {"range": [0, TRIALS]}}, "running": CAP})
    order = submissions.trials(made.ctx, group)
    assert rests(made, scheduler) == CAP
    assert set(holders(made, group)) == set(order[:CAP])
    ended = 0
    while running := holders(made, group):
        ends(made, min(running.items())[1])
        ended += 1
        assert rests(made, scheduler) == (1 if ended <= TRIALS - CAP else 0)
        assert set(holders(made, group)) <= set(order[: ended + CAP])
        assert len(holders(made, group)) == min(CAP, TRIALS - ended)
    assert ended == TRIALS
    with made.ctx.db.read() as tx:
        done = select(func.count()).where(Job.group_id == group.id, Job.state == JobState.SUCCEEDED)
        assert tx.scalar(done) == TRIALS


def test_a_cap_holds_nobody_else_back(made: RecordedContext, scheduler: Scheduler) -> None:
    first = submissions.sweep(made.ctx, sweep={"parameters": {"env.N": [1, 2, 3]}, "running": 1})
    second = submissions.sweep(made.ctx, sweep={"parameters": {"env.N": [1, 2, 3]}, "running": 2})
    alone = submissions.job(made.ctx)
    assert rests(made, scheduler) == 4
    assert (len(holders(made, first)), len(holders(made, second))) == (1, 2)
    assert box.job_row(made.ctx.db, alone.id).state == JobState.ASSIGNED


def test_a_trial_that_is_being_stopped_counts_until_its_gpus_are_free(
    made: RecordedContext, scheduler: Scheduler
) -> None:
    group = submissions.sweep(made.ctx, sweep={"parameters": {"env.N": [1, 2, 3]}, "running": 1})
    assert rests(made, scheduler) == 1
    ((job, attempt),) = holders(made, group).items()
    now = made.ctx.now_us()
    with made.ctx.db.write() as tx:
        lifecycle.claim(tx, attempt, "box", "nonce", now)
        lifecycle.mark_running(tx, attempt, now)
        lifecycle.request_stop(tx, job, StopReason.CANCEL, "ada", now)
    assert rests(made, scheduler) == 0
    ends(made, attempt, exit_code=1, stop=StopReason.CANCEL)
    assert rests(made, scheduler) == 1


def test_a_paused_sweep_starts_nothing_until_it_is_resumed(made: RecordedContext, scheduler: Scheduler) -> None:
    sweep = {"parameters": {"env.N": [1, 2, 3, 4]}, "running": 1, "pause_after": 1}
    group = submissions.sweep(made.ctx, sweep=sweep)
    assert rests(made, scheduler) == 1
    ends(made, *holders(made, group).values(), exit_code=1)
    assert rests(made, scheduler) == 0
    group_actions.act(made.ctx.db, made.ctx.now_us, submissions.ADA, group.id, group_actions.resume)
    assert rests(made, scheduler) == 1
