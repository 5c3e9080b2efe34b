"""Launches that were not heard and nodes that fall silent, on a clock that the tests turn."""

from collections.abc import Iterator

import pytest
from sqlalchemy import select, update

from service import lifecycle
from service.controllers.early_stopping import Stopper
from service.controllers.job_limits import JobLimits
from service.controllers.monitor import Monitor
from service.db.engine import Database
from service.db.leader import Leader
from service.db.models import Event, Job, Node
from service.nodes import maintenance, registration
from tests.support import box
from tests.support.recorded_context import RecordedContext
from torchyard.states import JobState
from torchyard.wire import Prepared


@pytest.fixture
def monitor(yard: RecordedContext) -> Iterator[Monitor]:
    leader = Leader(yard.ctx.db)
    yield Monitor(yard.ctx, leader)
    leader.resign()


def test_a_launch_that_was_not_heard_is_published_again(yard: RecordedContext, monitor: Monitor) -> None:
    attempt_id = box.assign(yard.ctx.db, box.add_job(yard.ctx.db), ["box-gpu-0"])
    assert yard.sent == [("launch", "box", attempt_id)]
    yard.forget()
    monitor.run()
    assert yard.sent == []
    for rounds in (1, 2):
        yard.clock.sleep(2.5)
        monitor.run()
        monitor.run()
        assert yard.sent == [("launch", "box", attempt_id)] * rounds


def test_an_attempt_whose_spec_is_valid_no_more_ends_instead(yard: RecordedContext, monitor: Monitor) -> None:
    job_id = box.add_job(yard.ctx.db)
    box.assign(yard.ctx.db, job_id, ["box-gpu-0"])
    with yard.ctx.db.write() as tx:
        tx.execute(
            update(Job).where(Job.id == job_id).values(spec={**box.job_row(yard.ctx.db, job_id).spec, "gone": 1})
        )
    yard.forget()
    yard.clock.sleep(2.5)
    monitor.republish()
    job = box.job_row(yard.ctx.db, job_id)
    assert (job.state, job.error["cause"]) == (JobState.FAILED, "unusable")
    assert "gone: unknown field: leave it out" in job.error["message"]
    assert yard.sent == []


def test_an_unclaimed_attempt_is_taken_back(yard: RecordedContext, monitor: Monitor) -> None:
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


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_takes_no_attempt_back_and_keeps_none(
    yard: RecordedContext, monitor: Monitor, hours: int
) -> None:
    yard.clock.s += 3600  # this service has run for an hour
    attempt_id = box.assign(yard.ctx.db, box.add_job(yard.ctx.db), ["box-gpu-0"])
    monitor.run()
    yard.clock.sleep(60)
    monitor.run()
    yard.clock.set(hours * 3600)
    yard.forget()
    yard.clock.sleep(59)
    monitor.run()
    assert yard.sent == [("launch", "box", attempt_id)]
    assert box.attempt_row(yard.ctx.db, attempt_id).state == "assigned"
    yard.clock.sleep(62)
    monitor.run()
    assert box.attempt_row(yard.ctx.db, attempt_id).state == "voided"


def gang(yard: RecordedContext) -> tuple[str, str]:
    """A job on two nodes, of which the second has claimed and prepared its part."""
    db = yard.ctx.db
    job_id = box.add_job(db, resources={"nodes": 2})
    attempt_id = box.spread(db, job_id, {"box": ["box-gpu-0"], "far": box.add_node(db, "far")[:1]})
    with db.write() as tx:
        lifecycle.claim(tx, attempt_id, "far", "n", box.NOW)
        lifecycle.prepared(tx, attempt_id, "far", Prepared(address="10.0.0.2", port=1), box.NOW)
    return job_id, attempt_id


def last_event(yard: RecordedContext, job_id: str) -> str:
    with yard.ctx.db.read() as tx:
        query = select(Event.message).where(Event.job_id == job_id).order_by(Event.seq.desc()).limit(1)
        return str(tx.scalar(query))


def test_one_of_several_nodes_that_does_not_claim_voids_all(yard: RecordedContext, monitor: Monitor) -> None:
    job_id, attempt_id = gang(yard)
    yard.clock.sleep(3)
    monitor.republish()
    assert set(yard.sent) == {("launch", "box", attempt_id), ("launch", "far", attempt_id)}
    yard.clock.sleep(118)
    monitor.void_unclaimed()
    assert box.attempt_row(yard.ctx.db, attempt_id).state == "voided"
    assert box.job_row(yard.ctx.db, job_id).retries_used == 0
    assert last_event(yard, job_id) == "node box has not claimed it within 120 s"
    with yard.ctx.db.read() as tx:
        data = tx.scalar(select(Event.data).where(Event.job_id == job_id, Event.kind == "voided"))
    assert data == {"node": "box", "lacks": "claim", "limit_s": 120}


def test_one_of_several_nodes_that_prepares_for_ever_voids_all(yard: RecordedContext, monitor: Monitor) -> None:
    job_id, attempt_id = gang(yard)
    with yard.ctx.db.write() as tx:
        lifecycle.claim(tx, attempt_id, "box", "n", box.NOW)
    yard.clock.sleep(1799)
    monitor.void_unclaimed()
    assert box.job_row(yard.ctx.db, job_id).state == JobState.ASSIGNED
    yard.clock.sleep(2)
    monitor.void_unclaimed()
    assert last_event(yard, job_id) == "node box is not prepared within 1800 s"


def test_one_of_several_nodes_that_falls_silent_before_the_word_voids_all(
    yard: RecordedContext, monitor: Monitor
) -> None:
    job_id, attempt_id = gang(yard)
    monitor.mark_silent_nodes()
    yard.clock.sleep(61)
    with yard.ctx.db.write() as tx:
        tx.execute(update(Node).where(Node.name == "box").values(last_seen_us=yard.clock.us))
    monitor.mark_silent_nodes()
    assert box.attempt_row(yard.ctx.db, attempt_id).state == "voided"
    assert last_event(yard, job_id) == "node far fell silent before all nodes were prepared"


def test_a_service_that_was_away_gives_the_nodes_their_time(yard: RecordedContext, monitor: Monitor) -> None:
    job_id = box.add_job(yard.ctx.db)
    box.assign(yard.ctx.db, job_id, ["box-gpu-0"])
    yard.clock.us += 3600 * 1_000_000  # the wall clock went on while the service was down
    monitor.run()
    assert box.job_row(yard.ctx.db, job_id).state == JobState.ASSIGNED


def test_silence_counts_from_the_start_of_the_service(yard: RecordedContext, monitor: Monitor) -> None:
    job_id = box.add_job(yard.ctx.db)
    box.start(yard.ctx.db, job_id, ["box-gpu-0"])
    yard.clock.us += 3600 * 1_000_000
    monitor.run()
    yard.clock.sleep(59)
    monitor.run()
    assert box.job_row(yard.ctx.db, job_id).state == JobState.RUNNING
    yard.clock.sleep(2)
    yard.forget()
    monitor.run()
    assert box.job_row(yard.ctx.db, job_id).state == JobState.UNREACHABLE
    assert yard.woken.is_set()  # what the node was to be given goes elsewhere


def test_a_heartbeat_ends_the_silence(yard: RecordedContext, monitor: Monitor) -> None:
    job_id = box.add_job(yard.ctx.db)
    box.start(yard.ctx.db, job_id, ["box-gpu-0"])
    for _ in range(5):
        monitor.run()
        yard.clock.sleep(40)
        with yard.ctx.db.write() as tx:
            tx.execute(update(Node).values(last_seen_us=yard.clock.us))
    monitor.run()
    assert box.job_row(yard.ctx.db, job_id).state == JobState.RUNNING


def test_a_part_that_fails_keeps_no_other_from_being_done(
    yard: RecordedContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but the round's end tells of it, where it is logged and counted."""
    db, done = yard.ctx.db, []
    for owner, part in ((JobLimits, "look_for_steps"), (maintenance, "reconcile"), (registration, "mark_unreachable")):
        monkeypatch.setattr(owner, part, lambda *_: 1 / 0)
    monkeypatch.setattr(JobLimits, "look_for_idleness", lambda _: done.append("idleness"))
    monkeypatch.setattr(Stopper, "run", lambda _: done.append("early"))
    job_id = box.add_job(db)
    box.assign(db, job_id, ["box-gpu-0"])
    leader = Leader(db)
    monitor = Monitor(yard.ctx, leader)
    with pytest.raises(ExceptionGroup) as first:
        monitor.run()
    yard.clock.sleep(121)
    with pytest.raises(ExceptionGroup) as second:
        monitor.run()
    leader.resign()
    assert [len(each.value.exceptions) for each in (first, second)] == [2, 3]
    assert done == ["idleness", "early"] * 2
    assert box.job_row(db, job_id).state == JobState.QUEUED


def test_one_service_leads_on_postgresql(db: Database) -> None:
    first, second = Leader(db), Leader(db)
    assert first.leads()
    assert first.leads()
    assert second.leads() == db.is_sqlite
    first.resign()
    assert second.leads()
    second.resign()
