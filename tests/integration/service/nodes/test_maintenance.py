"""Nodes drain before their maintenance and take jobs again after it, on a clock that the tests turn."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from service.accounting.policy_settings import set_policy
from service.db.engine import Database
from service.db.models import Node, Reservation
from service.errors import ProblemError
from service.nodes import maintenance, registration
from tests.support import box
from tests.support.recorded_context import RecordedContext, recorded_context
from torchyard.ids import new_id
from torchyard.spec.policy import Policy
from torchyard.states import JobState, StopReason

MINUTE = 60_000_000


@pytest.fixture
def yard(db: Database, tmp_path: Path) -> Iterator[RecordedContext]:
    box.add_people(db)
    box.add_node(db)
    with db.write() as tx:
        set_policy(tx, Policy(checkpoint_timeout=300))
    with recorded_context(db, tmp_path) as made:
        yield made


def add(yard: RecordedContext, starts_min: int, ends_min: int, **values: Any) -> str:
    """A maintenance of the box, so many minutes from now."""
    now, id_ = yard.clock.us, new_id("res")
    fields = {"maintenance": True, "users": [], "projects": [], "nodes": ["box"], "name": "new disks"} | values
    with yard.ctx.db.write() as tx:
        span = {"starts_us": now + starts_min * MINUTE, "ends_us": now + ends_min * MINUTE}
        tx.execute(insert(Reservation).values(id=id_, created_by="user-ada", created_us=now, **span, **fields))
    return id_


def draining(yard: RecordedContext) -> bool:
    maintenance.reconcile(yard.ctx.db, yard.ctx.now_us())
    with yard.ctx.db.read() as tx:
        return bool(tx.scalar(select(Node.draining).where(Node.name == "box")))


def test_a_node_drains_in_time_for_its_jobs_to_save_their_work(yard: RecordedContext) -> None:
    job = box.add_job(yard.ctx.db)
    box.start(yard.ctx.db, job, ["box-gpu-0"])
    id_ = add(yard, 10, 60)
    add(yard, 0, 60, name="for people", maintenance=False, users=["user-ada"])
    assert not draining(yard)
    assert box.job_row(yard.ctx.db, job).state == JobState.RUNNING
    yard.clock.sleep(5 * 60)
    assert draining(yard)
    row = box.job_row(yard.ctx.db, job)
    assert (row.state, row.stop, row.stop_actor) == (JobState.STOPPING, StopReason.DRAIN, maintenance.ACTOR)
    assert ("nudge", "box") in yard.sent
    assert yard.woken.is_set()
    with yard.ctx.db.read() as tx, pytest.raises(ProblemError, match=f"in maintenance 'new disks' until .*{id_}"):
        maintenance.refuse_resume(tx, "box", yard.clock.us)
    yard.clock.sleep(54 * 60)
    assert draining(yard)
    yard.clock.sleep(2 * 60)
    assert not draining(yard)


def test_a_maintenance_that_is_cancelled_ends_the_drain(yard: RecordedContext) -> None:
    id_ = add(yard, 1, 60)
    assert draining(yard)
    with yard.ctx.db.write() as tx:
        tx.execute(update(Reservation).where(Reservation.id == id_).values(cancelled_us=yard.clock.us))
    assert not draining(yard)


def test_one_maintenance_follows_another_without_a_gap(yard: RecordedContext) -> None:
    add(yard, 0, 60)
    add(yard, 60, 90)
    assert draining(yard)
    yard.clock.sleep(61 * 60)
    assert draining(yard)
    yard.clock.sleep(30 * 60)
    assert not draining(yard)


@pytest.mark.parametrize("when", ["before", "during"])
def test_what_an_administrator_drains_stays_drained(yard: RecordedContext, when: str) -> None:
    def drain() -> None:
        with yard.ctx.db.write() as tx:
            registration.set_draining(tx, "box", True)
            maintenance.keep_drained(tx, "box")

    if when == "before":
        drain()
    add(yard, 0, 60)
    assert draining(yard)
    if when == "during":
        drain()
    yard.clock.sleep(61 * 60)
    assert draining(yard)
