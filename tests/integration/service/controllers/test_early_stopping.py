"""Trials that do worse than the others are stopped early, by what they have reported, on both databases."""

import math
from typing import Any

from sqlalchemy import delete, select

from service.controllers.early_stopping import Stopper
from service.controllers.monitor import Monitor
from service.db.engine import Database
from service.db.leader import Leader
from service.db.models import Event, MetricPoint, MetricSeries
from service.jobs import groups
from tests.support import box, submissions
from tests.support.recorded_context import RecordedContext
from torchyard import api
from torchyard.states import StopReason

STOP = {"metric": "val/loss", "first": 10, "reduction": 3}


def sweep(made: RecordedContext, trials: int = 4, **stop: Any) -> tuple[api.Group, list[str], list[str]]:
    """A sweep with its jobs and their attempts, all of them running."""
    asked = {"parameters": {"env.TRIAL": {"range": [0, trials]}}, "stop": {**STOP, **stop}}
    group = submissions.sweep(made.ctx, sweep=asked)
    jobs = submissions.trials(made.ctx, group)
    return group, jobs, [box.start(made.ctx.db, job, [f"box-gpu-{n}"]) for n, job in enumerate(jobs)]


def states(db: Database, jobs: list[str]) -> list[str]:
    return [box.job_row(db, job).state for job in jobs]


def test_whoever_is_not_in_the_best_third_is_stopped_with_the_reason(made: RecordedContext, db: Database) -> None:
    group, jobs, attempts = sweep(made)
    stopper = Stopper(made.ctx)
    submissions.report(made.ctx, attempts[0], 0, range(1, 13), **{"val/loss": lambda step: 0.2 if step == 10 else 9.0})
    submissions.report(made.ctx, attempts[1], 0, range(1, 13), **{"val/loss": 0.41})
    stopper.run()
    assert states(db, jobs) == ["running"] * 4
    submissions.report(made.ctx, attempts[2], 0, range(1, 10), **{"val/loss": 99.0})
    stopper.run()
    assert states(db, jobs) == ["running"] * 4
    submissions.report(made.ctx, attempts[2], 9, range(10, 12), **{"val/loss": 0.3})
    stopper.run()
    assert states(db, jobs) == ["running", "stopping", "stopping", "running"]
    assert ("nudge", "box") in made.sent
    row = box.job_row(db, jobs[1])
    assert (row.stop, row.stop_actor) == ("early", None)
    box.finish(db, attempts[1], stop=StopReason.EARLY, exit_code=0, stopped_at_step=13)
    row = box.job_row(db, jobs[1])
    with db.read() as tx:
        told = tx.execute(select(Event.kind, Event.message).where(Event.job_id == jobs[1], Event.seq == row.last_event))
        shown = groups.present(tx, groups.find(tx, group.id, submissions.ADA), submissions.ADA)
    reason = "val/loss 0.41 is worse than the best third of 3 trials at rung 1 (step 10)"
    expected = f"stopped early at step 12: {reason} after a checkpoint at step 13"
    assert told.one() == ("cancelled", expected)
    assert row.state == "cancelled"
    assert (shown.stopped_early, shown.metric, shown.mode) == (1, "val/loss", "min")


def test_ended_trials_count_and_stay_as_they_are(made: RecordedContext, db: Database) -> None:
    _, jobs, attempts = sweep(made, mode="max")
    for n, value in enumerate((0.9, 0.8)):
        submissions.report(made.ctx, attempts[n], 0, range(1, 11), **{"val/loss": value})
        box.finish(db, attempts[n])
    submissions.report(made.ctx, attempts[2], 0, range(1, 11), **{"val/loss": math.nan})
    Stopper(made.ctx).run()
    assert states(db, jobs) == ["succeeded", "succeeded", "stopping", "running"]


def test_the_monitor_compares_the_next_rung_when_somebody_gets_there(made: RecordedContext, db: Database) -> None:
    _, jobs, attempts = sweep(made, 3)
    for n, attempt in enumerate(attempts):
        submissions.report(made.ctx, attempt, 0, range(1, 11), **{"val/loss": 1.0})
        submissions.report(made.ctx, attempt, 10, range(11, 31), rank=0, **{"val/loss": float(n)})
        submissions.report(made.ctx, attempt, 0, range(1, 31), rank=1, **{"val/loss": 7.0 - n})
    leader = Leader(db)
    Monitor(made.ctx, leader).run()
    leader.resign()
    assert states(db, jobs) == ["running", "stopping", "stopping"]


def test_a_trial_that_was_resumed_keeps_what_it_had(made: RecordedContext, db: Database) -> None:
    _, jobs, attempts = sweep(made, 3)
    submissions.report(made.ctx, attempts[0], 0, range(1, 11), **{"val/loss": 0.1})
    box.finish(db, attempts[0], stop=StopReason.DRAIN, exit_code=0, stopped_at_step=10)
    again = box.start(db, jobs[0], ["box-gpu-0"])
    submissions.report(made.ctx, again, 0, range(11, 13), **{"val/loss": 5.0})
    for attempt, value in zip(attempts[1:], (0.2, 0.3), strict=True):
        submissions.report(made.ctx, attempt, 0, range(1, 11), **{"val/loss": value})
    Stopper(made.ctx).run()
    assert states(db, jobs) == ["running", "stopping", "stopping"]


def test_a_trial_whose_points_are_gone_keeps_none_of_the_others(made: RecordedContext, db: Database) -> None:
    _, jobs, attempts = sweep(made, 4)
    for attempt, value in zip(attempts, (0.1, 0.2, 0.3, 0.4), strict=True):
        submissions.report(made.ctx, attempt, 0, range(1, 11), **{"val/loss": value})
    with db.write() as tx:
        lost = select(MetricSeries.id).where(MetricSeries.attempt_id == attempts[3])
        tx.execute(delete(MetricPoint).where(MetricPoint.series_id.in_(lost)))
    Stopper(made.ctx).run()
    assert states(db, jobs) == ["running", "stopping", "stopping", "running"]


def test_other_sweeps_and_a_new_round_cost_nothing(made: RecordedContext, db: Database) -> None:
    group = submissions.sweep(made.ctx, 2)
    box.start(db, submissions.trials(made.ctx, group)[0], ["box-gpu-0"])
    made.forget()
    stopper = Stopper(made.ctx)
    stopper.run()
    stopper.run()
    assert made.sent == []
