"""Passes over a real database, and the thread that makes them."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import event, select, update
from sqlalchemy.exc import OperationalError

from service import lifecycle, notices
from service.accounting import storage
from service.controllers import background
from service.controllers.scheduling import Scheduler
from service.db.engine import Database
from service.db.leader import Leader
from service.db.models import Allocation, Device, Job, Member, Node
from service.db.unit_of_work import unit_of
from service.infra import heap
from service.infra.observability import Counters
from service.infra.threads import Repeated
from service.scheduler.model.decisions import Start
from service.scheduler.model.nodes import Placement
from tests.support import box, submissions, wait
from tests.support.box import NOW
from tests.support.databases import locked
from tests.support.recorded_context import RecordedContext, recorded_context
from torchyard import api
from torchyard.ids import JobId
from torchyard.states import JobState


@pytest.fixture
def yard(db: Database, tmp_path: Path) -> Iterator[RecordedContext]:
    box.add_people(db)
    with recorded_context(db, tmp_path) as made:
        yield made


@pytest.fixture
def scheduler(yard: RecordedContext) -> Iterator[Scheduler]:
    leader = Leader(yard.ctx.db)
    yield Scheduler(yard.ctx, leader, Counters())
    leader.resign()


def test_a_pass_starts_what_fits_and_tells_the_node(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_node(yard.ctx.db, devices=2)
    low, high = box.add_job(yard.ctx.db, priority="low"), box.add_job(yard.ctx.db, gpus=2, priority="high")
    assert scheduler.run_pass() == 1
    job = box.job_row(yard.ctx.db, high)
    assert (job.state, box.job_row(yard.ctx.db, low).state) == (JobState.ASSIGNED, JobState.QUEUED)
    assert [message[:2] for message in yard.sent] == [("launch", "box")]
    with yard.ctx.db.read() as tx:
        assert list(tx.scalars(select(Allocation.index).order_by(Allocation.index))) == [0, 1]
    assert scheduler.run_pass() == 0


def test_metrics_count_gpu_time_that_is_kept(yard: RecordedContext) -> None:
    counters, leader = Counters(), Leader(yard.ctx.db)
    scheduler = Scheduler(yard.ctx, leader, counters)

    def idle_s(kind: str) -> float | None:
        return counters.registry.get_sample_value("torchyard_gpu_idle_seconds_total", {"kind": kind})

    box.add_node(yard.ctx.db, devices=2)
    box.start(yard.ctx.db, box.add_job(yard.ctx.db, preemptible=False, time_limit="2h"), ["box-gpu-0"])
    for _ in range(2):
        scheduler.run_pass()
    assert (idle_s("avoidable"), idle_s("kept")) == (0, 0), "nobody waits"
    box.add_job(yard.ctx.db, gpus=2, preemptible=False)
    box.add_job(yard.ctx.db, preemptible=False)
    assert scheduler.run_pass() == 0
    yard.clock.sleep(5)
    scheduler.run_pass()
    assert (idle_s("avoidable"), idle_s("kept")) == (0, 5)
    notices.pause(yard.ctx.db, submissions.ADA, api.NewPause(), yard.ctx.now_us())
    scheduler.run_pass()
    yard.clock.sleep(5)
    scheduler.run_pass()
    assert idle_s("kept") == 5, "what an administrator has stopped is nobody's waste"
    leader.resign()


def test_a_locked_database_puts_a_pass_off(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_node(yard.ctx.db)
    job = box.add_job(yard.ctx.db)
    with locked(yard.ctx.db), pytest.raises(OperationalError):
        scheduler.run_pass()
    assert box.job_row(yard.ctx.db, job).state == JobState.QUEUED
    assert scheduler.run_pass() == 1


def test_nothing_starts_while_the_services_own_disk_is_nearly_full(
    yard: RecordedContext, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.add_node(yard.ctx.db)
    job = box.add_job(yard.ctx.db)
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=yard.ctx.settings.disk_floor - 1))
        assert scheduler.run_pass() == 0
        why = submissions.why(yard.ctx, job)
        assert why.reasons[0].code == "service-disk"
        assert "service's own disk" in why.summary
    assert scheduler.run_pass() == 1


def test_several_nodes_are_taken_and_told_at_once(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_node(yard.ctx.db, "a", devices=2)
    box.add_node(yard.ctx.db, "b", devices=1)
    first, second = (box.add_job(yard.ctx.db, gpus, resources={"nodes": 2}) for gpus in (1, 2))
    assert scheduler.run_pass() == 1
    assert box.job_row(yard.ctx.db, second).state == JobState.QUEUED
    assert sorted(message[:2] for message in yard.sent) == [("launch", "a"), ("launch", "b")]
    with yard.ctx.loader.snapshot(yard.ctx.db, NOW) as (tx, state):
        members = tx.execute(select(Member.node_rank, Member.node).order_by(Member.node_rank)).all()
    assert {member.node for member in members} == {"a", "b"}
    assert {job: [placement.node for placement in held.placements] for job, held in state.running.items()} == {
        first: [member.node for member in members]
    }


def test_jobs_that_share_start_on_one_gpu(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_node(yard.ctx.db, devices=1)
    jobs = [box.add_job(yard.ctx.db, resources={"gpu_share": "30GiB"}) for _ in range(3)]
    assert scheduler.run_pass() == 2
    assert scheduler.run_pass() == 0
    with yard.ctx.loader.snapshot(yard.ctx.db, NOW) as (_, state):
        pass
    assert {placement for held in state.running.values() for placement in held.placements} == {
        Placement(node="box", uuids=("box-gpu-0",))
    }
    assert set(state.waiting) == {jobs[2]}


def test_a_stored_spec_that_is_no_longer_valid_stops_nobody(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_node(yard.ctx.db, devices=2)
    old, new = box.add_job(yard.ctx.db), box.add_job(yard.ctx.db)
    with yard.ctx.db.write() as tx:
        spec = box.job_row(yard.ctx.db, old).spec | {"forgotten_field": 1}
        tx.execute(update(Job).where(Job.id == old).values(spec=spec))
    assert scheduler.run_pass() == 2
    assert box.job_row(yard.ctx.db, new).state == JobState.ASSIGNED


def test_a_long_queue_is_read_once(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_node(yard.ctx.db, devices=1)
    jobs = [box.add_job(yard.ctx.db) for _ in range(4)]
    assert scheduler.run_pass() == 1
    scheduler.run_pass()
    statements: list[str] = []
    event.listen(yard.ctx.db.engine, "before_cursor_execute", lambda *seen: statements.append(seen[2]))
    scheduler.run_pass()
    assert statements
    assert not [statement for statement in statements if "jobs.spec" in statement]
    assert [box.job_row(yard.ctx.db, job).state for job in jobs[1:]] == [JobState.QUEUED] * 3


@pytest.mark.parametrize(
    "closed",
    [{"draining": True}, {"unreachable": True}, {"disk_free": 2**30}, {"disk_floor": 2**50}, {"last_seen_us": None}],
    ids=lambda values: next(iter(values)),
)
def test_closed_nodes_take_nothing(yard: RecordedContext, scheduler: Scheduler, closed: dict[str, object]) -> None:
    box.add_node(yard.ctx.db, **closed)
    box.add_job(yard.ctx.db)
    assert scheduler.run_pass() == 0


def test_cores_and_memory_of_running_jobs_count(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_node(yard.ctx.db, devices=4, cpus=8)
    for _ in range(4):
        box.add_job(yard.ctx.db, resources={"cpus": 3})
    assert scheduler.run_pass() == 2
    assert scheduler.run_pass() == 0


def test_devices_that_are_gone_or_broken_take_nothing(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_node(yard.ctx.db, devices=3)
    with yard.ctx.db.write() as tx:
        tx.execute(update(Device).where(Device.uuid == "box-gpu-0").values(present=False))
        tx.execute(update(Device).where(Device.uuid == "box-gpu-1").values(unusable="stuck"))
    jobs = [box.add_job(yard.ctx.db) for _ in range(3)]
    assert scheduler.run_pass() == 1
    assert box.job_row(yard.ctx.db, jobs[0]).state == JobState.ASSIGNED


def test_a_retry_waits_until_its_checkpoints_are_stored(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_node(yard.ctx.db)
    job_id = box.add_job(yard.ctx.db, max_retries=3)
    attempt_id = box.start(yard.ctx.db, job_id, ["box-gpu-0"])
    box.finish(yard.ctx.db, attempt_id, exit_code=1)
    assert scheduler.run_pass() == 0
    with yard.ctx.db.write() as tx:
        lifecycle.settle(tx, attempt_id, "box")
    assert scheduler.run_pass() == 1


def test_a_retry_does_not_wait_for_ever(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_node(yard.ctx.db)
    job_id = box.add_job(yard.ctx.db, max_retries=3)
    box.finish(yard.ctx.db, box.start(yard.ctx.db, job_id, ["box-gpu-0"]), exit_code=1)
    assert scheduler.run_pass() == 0
    yard.clock.sleep(601)
    assert scheduler.run_pass() == 1


def test_a_pass_that_loses_a_race_leaves_it_to_the_next(
    yard: RecordedContext, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.add_node(yard.ctx.db, devices=1)
    first, second = box.add_job(yard.ctx.db), box.add_job(yard.ctx.db)
    decided = scheduler._start

    def after_a_rival(decision: Start, looked_us: int) -> bool:
        box.assign(yard.ctx.db, second, ["box-gpu-0"])
        return decided(decision, looked_us)

    monkeypatch.setattr(scheduler, "_start", after_a_rival)
    assert scheduler.run_pass() == 0
    assert box.job_row(yard.ctx.db, first).state == JobState.QUEUED
    with yard.ctx.db.read() as tx:
        assert len(tx.execute(select(Member.attempt_id)).all()) == 1


def test_the_loops_start_jobs_when_woken_and_end(yard: RecordedContext) -> None:
    box.add_node(yard.ctx.db)
    counters = Counters()
    with background.running(yard.ctx, yard.woken, counters):
        job_id = box.add_job(yard.ctx.db)
        yard.ctx.wake_scheduler()
        wait.until(lambda: box.job_row(yard.ctx.db, job_id).state == JobState.ASSIGNED)
    assert not {"scheduler", "monitor", "housekeeping"} & {thread.name for thread in threading.enumerate()}
    assert b"torchyard_scheduler_errors_total 0.0" in counters.text()


def test_housekeeping_corrects_sums_of_stored_bytes(yard: RecordedContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FIRST_COMPARISON_US", 0)
    db, job = yard.ctx.db, box.add_job(yard.ctx.db)
    with db.write() as tx:
        unit_of(tx).count_stored(JobId(job), 5)  # of no file

    def held() -> int:
        with db.read() as tx:
            return storage.held(tx, "user").files.total()

    assert held() == 5
    with background.running(yard.ctx, yard.woken, Counters()):
        wait.until(lambda: held() == 0)


def test_a_clock_that_is_set_forward_makes_nothing_old(yard: RecordedContext, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    monkeypatch.setattr(background, "HOUSEKEEPING_S", 0.01)
    monkeypatch.setattr(background.discard, "sweep", lambda _db, _store, now, _keep_s: rounds.append(now))
    with background.running(yard.ctx, yard.woken, Counters()):
        wait.until(lambda: rounds)
        yard.clock.set(365 * 86_400)
        seen = len(rounds)
        wait.until(lambda: len(rounds) > seen + 1)
    assert set(rounds) == {box.NOW}


def test_free_memory_is_given_back_again_and_again(yard: RecordedContext, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    monkeypatch.setattr(background, "GIVE_BACK_S", 0.01)
    monkeypatch.setattr(heap, "give_back", lambda: rounds.append(1))
    with background.running(yard.ctx, yard.woken, Counters()):
        wait.until(lambda: len(rounds) > 2)


def test_a_round_that_fails_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    rounds: list[int] = []
    failures: list[int] = []

    def work() -> None:
        rounds.append(1)
        if len(rounds) == 1:
            raise RuntimeError("the database is away")

    woken = threading.Event()
    with Repeated("worker", work, every_s=60, failed=lambda: failures.append(1), woken=woken):
        wait.until(lambda: failures)
        woken.set()
        wait.until(lambda: len(rounds) == 2)
    assert failures == [1]
    assert "the database is away" in caplog.text


def test_nodes_are_read_with_what_they_hold(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_node(yard.ctx.db, devices=2)
    box.add_job(yard.ctx.db, time_limit=60)
    scheduler.run_pass()
    with yard.ctx.db.write() as tx:
        tx.execute(update(Node).values(cpus=1))
    with yard.ctx.loader.snapshot(yard.ctx.db, NOW) as (_, state):
        pass
    assert [[placement.uuids for placement in held.placements] for held in state.running.values()] == [[("box-gpu-0",)]]
    assert state.nodes["box"].cpus == 1
