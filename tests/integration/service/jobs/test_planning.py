"""Sweeps are stored whole or not at all, on both databases."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event, func, select

from service.accounting import accounts
from service.db.engine import Database
from service.db.models import Dependency, Event, Group, Job, Tag
from service.errors import ProblemError
from service.jobs import planning, submit
from tests.support import submissions
from tests.support.recorded_context import RecordedContext
from torchyard import api


def count(db: Database, table: type) -> int:
    with db.read() as tx:
        return tx.scalar(select(func.count()).select_from(table)) or 0


def test_a_sweep_is_a_group_and_its_jobs(made: RecordedContext, db: Database) -> None:
    before = submissions.job(made.ctx)
    group = submissions.sweep(
        made.ctx, name="digits", tags=["a"], recipe={"model": "digits_cnn"}, sweep={"lr": [0.1, 0.01], "seed": [1, 2]}
    )
    assert (group.number, group.size, group.states) == (before.number + 1, 4, {"queued": 4})
    assert group.sweep["parameters"] == {"lr": [0.1, 0.01], "seed": [1, 2]}
    with db.read() as tx:
        rows = tx.execute(select(Job.__table__).where(Job.group_id == group.id).order_by(Job.number)).all()
    assert [row.number for row in rows] == [group.number + n for n in range(1, 5)]
    assert [row.name for row in rows] == ["digits-1", "digits-2", "digits-3", "digits-4"]
    assert [row.trial for row in rows] == [0, 1, 2, 3]
    assert sorted(row.id for row in rows) == [row.id for row in rows]
    assert rows[1].parameters == {"lr": 0.1, "seed": 2}
    assert rows[1].spec["recipe"]["optim"]["lr"] == 0.1
    assert all(row.spec["sweep"] is None for row in rows)
    assert (count(db, Event), count(db, Tag)) == (5, 4)
    assert submissions.job(made.ctx).number == group.number + 5


def test_portions_make_one_sweep(made: RecordedContext, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "PORTION", 2)
    group = submissions.sweep(made.ctx, tags=["a"], sweep={"env.SEED": {"range": [0, 5]}})
    with db.read() as tx:
        rows = tx.execute(select(Job.__table__).where(Job.group_id == group.id).order_by(Job.number)).all()
    assert [(row.trial, row.number - group.number, row.spec["env"]["SEED"]) for row in rows] == [
        (trial, trial + 1, str(trial)) for trial in range(5)
    ]
    assert (count(db, Event), count(db, Tag)) == (5, 5)


def test_the_time_is_taken_when_all_locks_are_held(
    made: RecordedContext, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler reads what has changed lately: what waited for others must not look old once it is visible."""
    monkeypatch.setattr(accounts, "check_queued", lambda *_, **__: made.clock.sleep(60))
    group = submissions.sweep(made.ctx)
    with db.read() as tx:
        assert set(tx.scalars(select(Job.changed_us).where(Job.group_id == group.id))) == {made.clock.us}


def test_what_no_node_can_ever_hold_stores_nothing(made: RecordedContext, db: Database) -> None:
    with pytest.raises(ProblemError) as caught:
        submissions.sweep(made.ctx, sweep={"resources.gpus": [1, 2, 99]})
    assert caught.value.kind == "never-fits"
    assert (count(db, Group), count(db, Job)) == (0, 0)


def test_each_different_shape_is_checked_once_against_nodes_that_are_read_once(
    made: RecordedContext, db: Database
) -> None:
    asked: list[str] = []
    listen = lambda *call: asked.append(call[2])  # noqa: E731
    event.listen(db.engine, "before_cursor_execute", listen)
    submissions.sweep(made.ctx, sweep={"resources.gpus": [1, 2], "env.SEED": {"range": [0, 50]}})
    event.remove(db.engine, "before_cursor_execute", listen)
    assert sum("FROM devices" in statement for statement in asked) == 1
    assert len(asked) < 30
    with pytest.raises(ProblemError) as caught:
        submissions.sweep(made.ctx, sweep={"resources.cpus": {"range": [1, planning.MAX_RESOURCE_REQUESTS + 2]}})
    assert caught.value.errors[0].field == "sweep.parameters"


def test_a_key_that_comes_again_makes_no_second_sweep(made: RecordedContext, db: Database) -> None:
    order = submissions.order("key", sweep={"env.SEED": [1, 2]})
    first, again = (submissions.submit(made.ctx, order) for _ in range(2))
    assert (first.new, again.new) == (True, False)
    assert first.made == again.made
    assert (count(db, Group), count(db, Job)) == (1, 2)


def test_a_dry_run_counts_and_shows_the_first(made: RecordedContext, db: Database) -> None:
    shown, first = submit.check(
        made.ctx.db, made.ctx.store, submissions.order(name="x", sweep={"env.SEED": {"range": [0, 7]}})
    )
    assert (first.name, first.env["SEED"]) == ("x-1", "0")
    assert shown.trials == 7
    assert shown.first_trials[0] == api.PlannedTrial(name="x-1", parameters={"env.SEED": 0})
    assert len(shown.first_trials) == submit.SHOWN
    assert count(db, Job) == 0
    alone = submit.check(made.ctx.db, made.ctx.store, submissions.order()).answer
    assert (alone.trials, alone.first_trials) == (None, [])


def test_submissions_at_the_same_time_keep_their_numbers_apart(made: RecordedContext, db: Database) -> None:
    with ThreadPoolExecutor(4) as pool:
        groups = list(pool.map(lambda _: submissions.sweep(made.ctx, 20), range(4)))
    with db.read() as tx:
        numbers = list(tx.scalars(select(Job.number)))
    assert len({*numbers, *(group.number for group in groups)}) == 84
    for group in groups:
        with db.read() as tx:
            own = list(tx.scalars(select(Job.number).where(Job.group_id == group.id)))
        assert min(own) > group.number


def test_every_trial_waits_for_what_the_sweep_comes_after(made: RecordedContext, db: Database) -> None:
    first = submissions.job(made.ctx)
    submissions.sweep(made.ctx, 3, after=[first.number])
    assert count(db, Dependency) == 3
    with db.read() as tx:
        assert tx.scalar(select(func.count()).where(Job.blocked)) == 3
