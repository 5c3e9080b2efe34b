"""A policy played over what has run here, by the real simulator; on both databases."""

import pytest

from service.db.engine import Database
from service.errors import ProblemError
from service.infra.times import moment
from service.nodes import reservations
from service.queue import what_if
from tests.support import box
from tests.support.box import GIB
from tests.support.submissions import ADA
from torchyard.api.sharing import NewReservation, WhatIf, WhatIfAnswer
from torchyard.spec.policy import Order, Policy

HOUR = 3600
NOW = box.NOW + 30 * 24 * HOUR * 1_000_000
FIFO = Policy(order=Order.FIFO, preemption=False, time_slice=None)


def ago(hours: float) -> int:
    return NOW - round(hours * HOUR) * 1_000_000


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


def cys(found: WhatIfAnswer) -> float:
    """Mean wait of cy's jobs under the policy that is asked about."""
    return next(each.mean_wait_after_s for each in found.users if each.user == "cy")
