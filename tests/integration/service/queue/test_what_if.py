"""A policy played over what has run here, by the real simulator; on both databases."""

import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from service.db.engine import Database
from service.db.models import Attempt, Checkpoint, Job, Project
from service.errors import ProblemError
from service.infra.times import moment
from service.jobs import present
from service.nodes import reservations
from service.queue import what_if
from service.simulator import __main__ as simulator
from tests.support import box
from tests.support.box import GIB
from tests.support.submissions import ADA
from torchyard.api.sharing import NewReservation, WhatIf, WhatIfAnswer
from torchyard.ids import new_id
from torchyard.spec.policy import Order, Policy
from torchyard.states import AttemptState

HOUR = 3600
NOW = box.NOW + 30 * 24 * HOUR * 1_000_000
FIFO = Policy(order=Order.FIFO, preemption=False, time_slice=None)


def ago(hours: float) -> int:
    return NOW - round(hours * HOUR) * 1_000_000


@pytest.fixture
def simulator_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator's command in this process: to load it takes ten times as long as to play these jobs."""

    def output(command: Sequence[str]) -> str:
        module = command.index("service.simulator")
        with redirect_stdout(io.StringIO()) as printed:
            assert simulator.main(command[module + 1 :]) == 0
        return printed.getvalue()

    monkeypatch.setattr(what_if, "_output", output)


@pytest.fixture
def lived(db: Database) -> Database:
    """A box of two GPUs, on which ada's long job that can be stopped was followed by bob's short one."""
    box.add_people(db)
    box.add_user(db, "bob")
    box.add_node(db)
    long = box.add_ended(db, 2, came_us=ago(100), ran_s=10 * HOUR)
    box.add_checkpoint(db, long, 1)
    box.add_ended(db, came_us=ago(99), ran_s=360, user="user-bob")
    return db


@pytest.mark.usefixtures("simulator_here")
def test_before_and_after_of_a_policy_and_of_each_user(lived: Database) -> None:
    box.add_ended(lived, 8, came_us=ago(98), ran_s=60)
    box.add_ended(lived, came_us=ago(24 * 8), ran_s=60)
    found = what_if.play(lived, WhatIf(policy=FIFO, weeks=1), NOW)
    assert (found.jobs, found.left_out, found.nodes, found.gpus) == (2, 1, 1, 2)
    assert [(each.user, each.jobs, each.mean_wait_after_s) for each in found.users] == [
        ("ada", 1, 0),
        ("bob", 1, 9 * HOUR),
    ]
    assert found.users[1].mean_wait_before_s < HOUR, "the policy that holds stops the long job for it"
    assert found.before.preemptions > found.after.preemptions == 0
    assert found.after.mean_wait_s == 4.5 * HOUR
    assert found.after.mean_jct_s == pytest.approx((10 * HOUR + 9 * HOUR + 360) / 2)


@pytest.mark.usefixtures("simulator_here")
def test_who_had_a_checkpoint_could_be_stopped_as_the_history_says(lived: Database) -> None:
    """A checkpoint that is deleted tells as much as one that is kept."""
    with lived.write() as tx:
        tx.execute(update(Checkpoint).values(state="deleted"))
    with lived.read() as tx:
        storage = [job.storage for job in present.jobs(tx, tx.scalars(select(Job.id).order_by(Job.number)).all(), None)]
    assert [(each.checkpoints, each.saved) for each in storage] == [(0, True), (0, False)]
    assert what_if.play(lived, WhatIf(policy=FIFO, weeks=1), NOW).before.preemptions > 0


def test_what_cannot_be_played_is_refused_with_the_mend(lived: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProblemError, match="order: srtf is an oracle"):
        what_if.play(lived, WhatIf(policy=Policy(order=Order.SRTF)), NOW)
    with pytest.raises(ProblemError, match="weeks: no job with GPUs"):
        what_if.play(lived, WhatIf(policy=FIFO), ago(-24 * 60))
    with monkeypatch.context() as hurried:
        hurried.setattr(what_if, "LONGEST_S", 0.01)
        with pytest.raises(ProblemError, match="take fewer"):
            what_if.play(lived, WhatIf(policy=FIFO), NOW)
    assert what_if.play(lived, WhatIf(policy=FIFO), NOW).jobs == 2, "the next has its turn"


@pytest.mark.usefixtures("simulator_here")
def test_reservations_and_shared_gpus_are_played(lived: Database) -> None:
    """Two of half a GPU ran beside each other; a reservation of both GPUs, cancelled after an hour, held all back."""
    box.add_user(lived, "cy")
    for _ in range(2):
        box.add_ended(lived, came_us=ago(20), ran_s=HOUR, user="user-cy", resources={"gpus": 1, "gpu_share": 10 * GIB})
    calm = WhatIf(policy=FIFO, weeks=1)
    assert cys(what_if.play(lived, calm, NOW)) == 0
    new = NewReservation(name="demo", users=("bob",), gpus=2, ends_at=moment(ago(10)))
    made = reservations.create(lived, ADA, new, ago(21))
    reservations.cancel(lived, ADA, made.id, ago(19))
    found = what_if.play(lived, calm, NOW)
    assert cys(found) == HOUR
    assert found.after.reserved_idle > 0


@pytest.mark.usefixtures("simulator_here")
def test_trials_that_were_thrown_away_are_not_played(db: Database) -> None:
    box.add_people(db)
    box.add_node(db)
    last = box.add_ended(db, came_us=ago(20), ran_s=HOUR)
    job = box.attempt_row(db, last).job_id
    with db.write() as tx:
        tx.execute(update(Attempt).where(Attempt.id == last).values(number=2))
        times = {"created_us": ago(30), "started_us": ago(30), "ended_us": ago(25)}
        tx.execute(insert(Attempt).values(id="att-old", job_id=job, number=1, state=AttemptState.PREEMPTED, **times))
        tx.execute(update(Job).where(Job.id == job).values(attempt=2))
    calm = WhatIf(policy=FIFO, weeks=1)
    assert what_if.play(db, calm, NOW).after.mean_jct_s == 6 * HOUR
    with db.write() as tx:
        tx.execute(update(Job).where(Job.id == job).values(restarts=1))
    assert what_if.play(db, calm, NOW).after.mean_jct_s == HOUR


@pytest.mark.usefixtures("simulator_here")
def test_who_may_start_over_is_as_the_project_has_it(db: Database) -> None:
    """Two jobs for one GPU, of which the longer came first: it is put back, unless its project wants it not."""
    box.add_people(db)
    box.add_node(db, devices=1)
    plain: dict[str, Any] = {"command": ["python", "train.py"], "launcher": "python", "code": new_id("snap")}
    box.add_ended(db, came_us=ago(20), ran_s=10 * HOUR, **plain)
    box.add_ended(db, came_us=ago(20) + 30_000_000, ran_s=360, **plain)

    def restarts(**policy: Any) -> int:
        return what_if.play(db, WhatIf(policy=Policy(**policy), weeks=1), NOW).after.restarts

    assert restarts() == 1
    with db.read() as tx:
        (project,) = tx.scalars(select(Job.project).distinct())
    assert restarts(no_restarts=(project,)) == 0
    with db.write() as tx:
        tx.execute(update(Project).where(Project.name == project).values(restarts=False))
    assert restarts() == 0


def cys(found: WhatIfAnswer) -> float:
    """Mean wait of cy's jobs under the policy that is asked about."""
    return next(each.mean_wait_after_s for each in found.users if each.user == "cy")
