"""Launches that were not heard and nodes that fall silent, on a clock that the tests turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from service.db.engine import Database
from service.db.models import Node
from service.leader import Leader
from service.monitor import Monitor
from tests.support import box
from tests.support.parts import Parts, parts
from torchyard.states import JobState


@pytest.fixture
def yard(db: Database, tmp_path: Path) -> Iterator[Parts]:
    box.add_people(db)
    box.add_node(db)
    with parts(db, tmp_path) as made:
        yield made


@pytest.fixture
def monitor(yard: Parts) -> Iterator[Monitor]:
    leader = Leader(yard.ctx.db)
    yield Monitor(yard.ctx, leader)
    leader.resign()


def test_a_launch_that_was_not_heard_is_published_again(yard: Parts, monitor: Monitor) -> None:
    attempt_id = box.assign(yard.ctx.db, box.add_job(yard.ctx.db), ["box-gpu-0"])
    monitor.run()
    assert yard.sent == []
    for rounds in (1, 2):
        yard.clock.sleep(2.5)
        monitor.run()
        monitor.run()
        assert yard.sent == [("launch", "box", attempt_id)] * rounds


def test_an_unclaimed_attempt_is_taken_back(yard: Parts, monitor: Monitor) -> None:
    job_id = box.add_job(yard.ctx.db)
    attempt_id = box.assign(yard.ctx.db, job_id, ["box-gpu-0"])
    yard.clock.sleep(119)
    monitor.void_unclaimed()
    assert box.job_row(yard.ctx.db, job_id).state == JobState.ASSIGNED
    yard.clock.sleep(2)
    monitor.void_unclaimed()
    assert box.job_row(yard.ctx.db, job_id).state == JobState.QUEUED
    assert box.attempt_row(yard.ctx.db, attempt_id).state == "voided"
    assert yard.woken.is_set()


def test_a_service_that_was_away_gives_the_nodes_their_time(yard: Parts, monitor: Monitor) -> None:
    job_id = box.add_job(yard.ctx.db)
    box.assign(yard.ctx.db, job_id, ["box-gpu-0"])
    yard.clock.us += 3600 * 1_000_000  # the wall clock went on while the service was down
    monitor.run()
    assert box.job_row(yard.ctx.db, job_id).state == JobState.ASSIGNED


def test_silence_counts_from_the_start_of_the_service(yard: Parts, monitor: Monitor) -> None:
    job_id = box.add_job(yard.ctx.db)
    box.start(yard.ctx.db, job_id, ["box-gpu-0"])
    yard.clock.us += 3600 * 1_000_000
    monitor.run()
    yard.clock.sleep(59)
    monitor.run()
    assert box.job_row(yard.ctx.db, job_id).state == JobState.RUNNING
    yard.clock.sleep(2)
    monitor.run()
    assert box.job_row(yard.ctx.db, job_id).state == JobState.UNREACHABLE


def test_a_heartbeat_ends_the_silence(yard: Parts, monitor: Monitor) -> None:
    job_id = box.add_job(yard.ctx.db)
    box.start(yard.ctx.db, job_id, ["box-gpu-0"])
    for _ in range(5):
        monitor.run()
        yard.clock.sleep(40)
        with yard.ctx.db.write() as tx:
            tx.execute(update(Node).values(last_seen_us=yard.clock.us))
    monitor.run()
    assert box.job_row(yard.ctx.db, job_id).state == JobState.RUNNING


def test_one_service_leads_on_postgresql(db: Database) -> None:
    first, second = Leader(db), Leader(db)
    assert first.leads()
    assert first.leads()
    assert second.leads() == db.is_sqlite
    first.resign()
    assert second.leads()
    second.resign()
