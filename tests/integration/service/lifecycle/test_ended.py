"""What the end of a job means for those that wait for it, and for its sweep."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import func, select

from service import lifecycle
from service.db.engine import Database
from service.db.models import Event, Group, Job
from service.errors import ProblemError
from service.jobs import group_actions, groups
from tests.support import box, submissions
from tests.support.box import NOW
from tests.support.recorded_context import RecordedContext
from torchyard import api
from torchyard.states import StopReason


def run(db: Database, job: api.Job | str, code: int = 0, gpu: int = 0) -> None:
    """Starts a job and ends it."""
    attempt = box.start(db, job if isinstance(job, str) else job.id, [f"box-gpu-{gpu}"])
    box.finish(db, attempt, exit_code=code)


def after(*jobs: api.Job | api.Group, **how: str) -> dict[str, Any]:
    return {"after": {"jobs": [str(job.number) for job in jobs], **how}}


def last_event(db: Database, job_id: str) -> Any:
    with db.read() as tx:
        query = select(Event.__table__).where(Event.job_id == job_id).order_by(Event.seq.desc())
        return tx.execute(query).first()


def test_a_job_starts_to_age_when_what_it_waited_for_has_succeeded(made: RecordedContext, db: Database) -> None:
    first, second = submissions.job(made.ctx), submissions.job(made.ctx)
    last = submissions.job(made.ctx, **after(first, second))
    assert last.blocked
    run(db, first)
    assert box.job_row(db, last.id).blocked
    run(db, second)
    row = box.job_row(db, last.id)
    assert (row.state, row.blocked, row.eligible_us, row.changed_us) == ("queued", False, NOW + 4, NOW + 4)
    event = last_event(db, last.id)
    assert (event.kind, event.seq, event.state) == ("unblocked", row.last_event, "queued")


def test_a_failure_fails_whoever_needs_success_and_whoever_waits_for_these(made: RecordedContext, db: Database) -> None:
    first = submissions.job(made.ctx)
    second = submissions.job(made.ctx, **after(first))
    third = submissions.job(made.ctx, **after(second))
    anyhow = submissions.job(made.ctx, **after(third, when="end"))
    run(db, first, code=1)
    assert [box.job_row(db, job.id).state for job in (second, third)] == ["failed", "failed"]
    row = box.job_row(db, second.id)
    assert row.error["cause"] == "dependency"
    assert f"job {first.number}," in row.error["message"]
    assert f"job {second.number}," in box.job_row(db, third.id).error["message"]
    data = last_event(db, second.id).data
    assert (data["job"], data["error"]["params"]) == (first.number, {"told": "advice", "job": first.number})
    assert (box.job_row(db, anyhow.id).state, box.job_row(db, anyhow.id).blocked) == ("queued", False)


def test_one_that_succeeds_is_enough_for_any(made: RecordedContext, db: Database) -> None:
    jobs = [submissions.job(made.ctx) for _ in range(2)]
    last = submissions.job(made.ctx, **after(*jobs, need="any"))
    run(db, jobs[0], code=1)
    assert box.job_row(db, last.id).blocked
    run(db, jobs[1])
    assert not box.job_row(db, last.id).blocked


def test_a_job_waits_for_all_trials_of_a_sweep(made: RecordedContext, db: Database) -> None:
    group = submissions.sweep(made.ctx, 2)
    by_number, by_id = (submissions.job(made.ctx, after=[ref]) for ref in (group.number, group.id))
    for trial in submissions.trials(made.ctx, group):
        assert box.job_row(db, by_number.id).blocked
        run(db, trial)
    assert not box.job_row(db, by_number.id).blocked
    assert not box.job_row(db, by_id.id).blocked


def test_a_cancelled_sweep_takes_along_whoever_needs_it(made: RecordedContext, db: Database) -> None:
    group = submissions.sweep(made.ctx, 3)
    last = submissions.job(made.ctx, **after(group))
    attempt = box.start(db, submissions.trials(made.ctx, group)[0], ["box-gpu-0"])
    group_actions.act(made.ctx.db, made.ctx.now_us, submissions.ADA, str(group.number), group_actions.cancel)
    assert [box.job_row(db, trial).state for trial in submissions.trials(made.ctx, group)] == [
        "stopping",
        "cancelled",
        "cancelled",
    ]
    assert ("nudge", "box") in made.sent
    assert box.job_row(db, last.id).error["cause"] == "dependency"
    box.finish(db, attempt, stop=StopReason.CANCEL, exit_code=0, stopped_at_step=3)
    assert box.job_row(db, submissions.trials(made.ctx, group)[0]).state == "cancelled"


def test_a_sweep_is_cancelled_while_a_trial_ends(made: RecordedContext, db: Database) -> None:
    for _ in range(5):
        group = submissions.sweep(made.ctx, 20)
        last = submissions.job(made.ctx, **after(group, when="end"))
        attempt = box.start(db, submissions.trials(made.ctx, group)[0], ["box-gpu-0"])
        with ThreadPoolExecutor(2) as pool:
            ended = pool.submit(box.finish, db, attempt)
            cancelled = pool.submit(
                group_actions.act,
                made.ctx.db,
                made.ctx.now_us,
                submissions.ADA,
                str(group.number),
                group_actions.cancel,
            )
            assert (ended.result(), cancelled.result().number) == ("succeeded", group.number)
        assert not box.job_row(db, last.id).blocked


def test_trials_that_were_stopped_early_do_not_speak_against_their_sweep(made: RecordedContext, db: Database) -> None:
    group = submissions.sweep(made.ctx, 2)
    last = submissions.job(made.ctx, **after(group))
    one, other = submissions.trials(made.ctx, group)
    attempt = box.start(db, one, ["box-gpu-0"])
    with db.write() as tx:
        lifecycle.request_stop(tx, one, StopReason.EARLY, None, NOW)
    box.finish(db, attempt, stop=StopReason.EARLY, exit_code=0, stopped_at_step=3)
    alone = submissions.job(made.ctx, **after(group, need="any"))
    assert box.job_row(db, last.id).blocked
    run(db, other)
    assert [box.job_row(db, job.id).blocked for job in (last, alone)] == [False, False]
    assert not submissions.job(made.ctx, **after(group)).blocked


def test_what_has_ended_already_holds_nobody_up(made: RecordedContext, db: Database) -> None:
    good, bad = submissions.job(made.ctx), submissions.job(made.ctx)
    run(db, good)
    run(db, bad, code=1)
    assert not submissions.job(made.ctx, **after(good)).blocked
    assert not submissions.job(made.ctx, **after(good, bad, when="end")).blocked
    with pytest.raises(ProblemError, match=f"job {bad.number} has failed, so this one would never start"):
        submissions.job(made.ctx, **after(good, bad))


def test_what_does_not_exist_is_named(made: RecordedContext) -> None:
    with pytest.raises(ProblemError) as caught:
        submissions.job(made.ctx, after=["7", "job-x", "grp-x"])
    assert [error.field for error in caught.value.errors] == ["after.jobs.0", "after.jobs.1", "after.jobs.2"]


def test_a_job_that_waits_for_others_can_be_cancelled(made: RecordedContext, db: Database) -> None:
    first = submissions.job(made.ctx)
    second = submissions.job(made.ctx, **after(first))
    with db.write() as tx:
        lifecycle.request_stop(tx, second.id, StopReason.CANCEL, "ada", NOW)
    run(db, first)
    assert box.job_row(db, second.id).state == "cancelled"


def test_two_ends_at_the_same_time_leave_nobody_waiting(made: RecordedContext, db: Database) -> None:
    for _ in range(5):
        jobs = [submissions.job(made.ctx) for _ in range(4)]
        last = submissions.job(made.ctx, **after(*jobs))
        attempts = [box.start(db, job.id, [f"box-gpu-{n}"]) for n, job in enumerate(jobs)]
        barrier = threading.Barrier(len(attempts))

        def end(attempt: str, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(60)
            box.finish(db, attempt)

        threads = [threading.Thread(target=end, args=(attempt,)) for attempt in attempts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not box.job_row(db, last.id).blocked


def test_an_end_and_a_submission_at_the_same_time_leave_nobody_waiting(made: RecordedContext, db: Database) -> None:
    for _ in range(5):
        first = submissions.job(made.ctx)
        attempt = box.start(db, first.id, ["box-gpu-0"])
        thread = threading.Thread(target=box.finish, args=(db, attempt))
        thread.start()
        second = submissions.job(made.ctx, **after(first))
        thread.join(60)
        assert not box.job_row(db, second.id).blocked


def test_many_that_wait_are_settled_in_few_statements(made: RecordedContext, db: Database) -> None:
    first = submissions.job(made.ctx)
    submissions.sweep(made.ctx, 300, **after(first))
    run(db, first)
    with db.read() as tx:
        assert tx.scalar(select(func.count()).where(Job.blocked)) == 0
        assert tx.scalar(select(func.count()).where(Event.kind == "unblocked")) == 300


def paused(db: Database, group: api.Group) -> str | None:
    with db.read() as tx:
        return tx.scalar(select(Group.paused).where(Group.id == group.id))


def test_a_sweep_whose_first_trials_fail_alike_is_paused_and_can_be_resumed(
    made: RecordedContext, db: Database
) -> None:
    group = submissions.sweep(made.ctx, 9)
    names = submissions.trials(made.ctx, group)
    for trial in names[:2]:
        run(db, trial, code=1)
    assert paused(db, group) is None
    run(db, names[2], code=1)
    assert str(paused(db, group)).startswith("the first 3 trials all failed alike")
    made.clock.sleep(1)
    group_actions.act(made.ctx.db, made.ctx.now_us, submissions.ADA, group.id, group_actions.resume)
    assert paused(db, group) is None
    run(db, names[3], code=1)
    assert paused(db, group) is None


def test_a_paused_sweep_that_is_cancelled_is_shown_as_cancelled(made: RecordedContext, db: Database) -> None:
    group = submissions.sweep(made.ctx, 9)
    names = submissions.trials(made.ctx, group)
    running = box.start(db, names[3], ["box-gpu-1"])
    for trial in names[:3]:
        run(db, trial, code=1)
    assert str(shown(db, group).paused).startswith("the first 3 trials all failed alike")
    group_actions.act(made.ctx.db, made.ctx.now_us, submissions.ADA, group.id, group_actions.cancel)
    now = shown(db, group)
    assert (now.paused, now.states) == (None, {"cancelled": 5, "failed": 3, "stopping": 1})
    box.finish(db, running, exit_code=1, stop=StopReason.CANCEL)
    now = shown(db, group)
    assert (now.paused, now.states) == (None, {"cancelled": 6, "failed": 3})
    assert now.ended_at is not None


def test_a_sweep_that_is_cancelled_trial_by_trial_is_not_paused_any_more(made: RecordedContext, db: Database) -> None:
    group = submissions.sweep(made.ctx, 4)
    *first, last = submissions.trials(made.ctx, group)
    for trial in first:
        run(db, trial, code=1)
    assert shown(db, group).paused is not None
    with db.write() as tx:
        lifecycle.request_stop(tx, last, StopReason.CANCEL, "ada", NOW + 9)
    assert (shown(db, group).paused, shown(db, group).states) == (None, {"cancelled": 1, "failed": 3})


def shown(db: Database, group: api.Group) -> api.Group:
    with db.read() as tx:
        return groups.present(tx, groups.find(tx, group.id, submissions.ADA), submissions.ADA)


def test_one_that_succeeds_first_keeps_a_sweep_going(made: RecordedContext, db: Database) -> None:
    group = submissions.sweep(made.ctx, 6)
    for trial, code in zip(submissions.trials(made.ctx, group), (0, 1, 1, 1, 1), strict=False):
        run(db, trial, code)
    assert paused(db, group) is None


def test_pause_after_nothing_never_pauses(made: RecordedContext, db: Database) -> None:
    group = submissions.sweep(made.ctx, sweep={"parameters": {"env.A": [1, 2, 3, 4]}, "pause_after": 0})
    for trial in submissions.trials(made.ctx, group):
        run(db, trial, code=1)
    assert paused(db, group) is None
