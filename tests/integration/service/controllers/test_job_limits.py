"""Limits of waiting jobs and of runs, on a clock that the tests turn."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from service import lifecycle
from service.controllers.job_limits import DUMP_PATIENCE_S, JobLimits
from service.db.engine import Database
from service.db.models import Event, Job, Member, MetricPoint, MetricSeries, Sample
from service.scheduler_cache.load import COMPARE_US
from service.telemetry import stacks
from tests.support import box
from tests.support.box import NOW
from tests.support.recorded_context import RecordedContext, recorded_context
from torchyard.states import JobState, StopReason
from torchyard.wire import DumpOrder, ProcessStack, StackDump


@pytest.fixture
def job_limits(yard: RecordedContext) -> JobLimits:
    return JobLimits(yard.ctx)


def turn(yard: RecordedContext, job_limits: JobLimits, seconds: float) -> None:
    yard.clock.sleep(seconds)
    job_limits.run()


def events(yard: RecordedContext, job_id: str) -> list[tuple[str, str]]:
    with yard.ctx.db.read() as tx:
        query = select(Event.kind, Event.message).where(Event.job_id == job_id).order_by(Event.seq)
        return [(row.kind, row.message) for row in tx.execute(query)]


# Jobs that never start


def test_a_job_that_could_not_start_in_time_is_given_up(yard: RecordedContext, job_limits: JobLimits) -> None:
    job_id, patient = box.add_job(yard.ctx.db, start_limit="10m"), box.add_job(yard.ctx.db)
    turn(yard, job_limits, 600)
    assert box.job_row(yard.ctx.db, job_id).state == JobState.QUEUED
    yard.forget()
    turn(yard, job_limits, 1)
    assert yard.woken.is_set()  # a job that waited for this one's end may start
    assert {f"job:{job_id}", "jobs", "queue"} <= set(yard.topics)
    job = box.job_row(yard.ctx.db, job_id)
    assert (job.state, job.error["cause"]) == (JobState.FAILED, "start-limit")
    assert "within its start_limit of 10m" in job.error["message"]
    assert box.job_row(yard.ctx.db, patient).state == JobState.QUEUED


def test_time_on_hold_does_not_count_and_a_job_that_ran_is_never_given_up(
    yard: RecordedContext, job_limits: JobLimits
) -> None:
    db = yard.ctx.db
    held, ran = box.add_job(db, start_limit=60), box.add_job(db, start_limit=60, max_retries=1)
    with db.write() as tx:
        lifecycle.hold(tx, held, "ada", NOW)
    box.finish(db, box.start(db, ran, ["box-gpu-0"]), exit_code=1)
    turn(yard, job_limits, 3600)
    with db.write() as tx:
        lifecycle.release_hold(tx, held, "ada", yard.clock.us)
    turn(yard, job_limits, 59)
    assert {box.job_row(db, each).state for each in (held, ran)} == {JobState.QUEUED}


@pytest.mark.parametrize("hours", [-24, 24])
def test_a_clock_that_is_set_neither_ends_nor_prolongs_a_wait(
    yard: RecordedContext, job_limits: JobLimits, hours: int
) -> None:
    job_id = box.add_job(yard.ctx.db, start_limit="10m")
    turn(yard, job_limits, 60)
    yard.clock.set(hours * 3600)
    turn(yard, job_limits, 539)
    assert box.job_row(yard.ctx.db, job_id).state == JobState.QUEUED
    turn(yard, job_limits, 2)
    assert box.job_row(yard.ctx.db, job_id).state == JobState.FAILED


def test_a_job_that_becomes_visible_late_is_not_missed_for_good(yard: RecordedContext, job_limits: JobLimits) -> None:
    job_limits.run()
    turn(yard, job_limits, 60)
    job_id = box.add_job(yard.ctx.db, start_limit="1m")
    with yard.ctx.db.write() as tx:
        tx.execute(update(Job).where(Job.id == job_id).values(changed_us=NOW))
    turn(yard, job_limits, 60)
    assert box.job_row(yard.ctx.db, job_id).state == JobState.QUEUED
    turn(yard, job_limits, COMPARE_US / 1e6)
    assert box.job_row(yard.ctx.db, job_id).state == JobState.FAILED


# Runs that make no step


class Run:
    """A run that reports its loss."""

    def __init__(
        self, yard: RecordedContext, job_limits: JobLimits, uuids: tuple[str, ...] = ("box-gpu-0",), **spec: Any
    ) -> None:
        self.yard, self.job_limits = yard, job_limits
        self.job_id = box.add_job(yard.ctx.db, gpus=len(uuids), **spec)
        self.attempt_id = box.start(yard.ctx.db, self.job_id, uuids)
        self.step = 0
        self.stream = "rank-0"

    @property
    def job(self) -> Any:
        return box.job_row(self.yard.ctx.db, self.job_id)

    def report(self, times: int = 1, *, seconds: float = 1) -> None:
        """Some steps, each with a round of the service after it."""
        for _ in range(times):
            self._store(self.yard.clock.us)
            turn(self.yard, self.job_limits, seconds)

    def _store(self, time_us: int) -> None:
        self.step += 1
        newest = {"last_step": self.step, "last_time_us": time_us, "last_value": 0.5}
        with self.yard.ctx.db.write() as tx:
            of_stream = (MetricSeries.attempt_id == self.attempt_id, MetricSeries.stream == self.stream)
            known = tx.scalar(select(MetricSeries.id).where(*of_stream))
            if known is None:
                of_run = {"job_id": self.job_id, "attempt_id": self.attempt_id, "attempt": 1}
                about = {"stream": self.stream, "rank": 0, "name": "loss"}
                known = tx.scalar(insert(MetricSeries).values(**of_run, **about).returning(MetricSeries.id))
            tx.execute(MetricSeries.__table__.update().where(MetricSeries.id == known).values(**newest))
            point = {"series_id": known, "seq": self.step, "step": self.step, "time_us": time_us, "value": 0.5}
            tx.execute(insert(MetricPoint).values(**point))

    def dumps(self) -> list[DumpOrder]:
        with self.yard.ctx.db.read() as tx:
            return lifecycle.orders_for(tx, "box").dumps

    def send(self, serial: int = 1) -> None:
        waits = ProcessStack(pid=8, rank=1, main=True, command="x", collective="all_reduce", place="train.py:88")
        loads = ProcessStack(pid=7, rank=0, main=True, command="x", doing="data loading", place="train.py:12")
        with self.yard.ctx.db.write() as tx:
            dump = StackDump(serial=serial, at_us=NOW, processes=[loads, waits])
            stacks.store(tx, self.attempt_id, "box", dump, self.yard.clock.us)


WORDS = "rank 0 is in data loading (train.py:12); rank 1 waits in all_reduce (train.py:88)"


def test_a_run_that_hangs_is_dumped_shown_and_stopped(yard: RecordedContext, job_limits: JobLimits) -> None:
    run = Run(yard, job_limits, max_retries=1)
    run.report(5)
    turn(yard, job_limits, 298)
    assert run.dumps() == []
    turn(yard, job_limits, 3)
    assert run.dumps() == [DumpOrder(attempt=run.attempt_id, serial=1)]
    assert ("nudge", "box") in yard.sent
    kind, message = events(yard, run.job_id)[-1]
    assert kind == "hangs"
    assert "no step for 5m" in message
    turn(yard, job_limits, 2)
    assert run.job.state == JobState.RUNNING
    run.send()
    run.send()
    assert run.dumps() == []
    yard.forget()
    turn(yard, job_limits, 2)
    assert yard.sent == [("nudge", "box")]
    assert yard.woken.is_set()
    assert (run.job.state, run.job.stop) == (JobState.STOPPING, StopReason.HUNG)
    assert events(yard, run.job_id)[-2:] == [
        ("stacks", WORDS),
        ("stop-requested", f"stopped because it makes no step any more: {WORDS}"),
    ]
    turn(yard, job_limits, 1000)
    assert box.finish(yard.ctx.db, run.attempt_id, signal=9, stop=StopReason.HUNG) is JobState.QUEUED
    assert run.job.retries_used == 1


def test_the_stacks_of_all_nodes_are_awaited(yard: RecordedContext, job_limits: JobLimits) -> None:
    run = Run(yard, job_limits, hang={"after": 10, "factor": 1})
    box.add_node(yard.ctx.db, "far")
    with yard.ctx.db.write() as tx:
        tx.execute(insert(Member).values(attempt_id=run.attempt_id, node_rank=1, node="far"))
    run.report(3)
    turn(yard, job_limits, 11)
    run.send()
    turn(yard, job_limits, 2)
    assert run.job.state == JobState.RUNNING
    assert "stacks" not in dict(events(yard, run.job_id))
    with yard.ctx.db.write() as tx:
        lone = ProcessStack(pid=9, rank=2, main=True, command="x", error="no py-spy")
        stacks.store(tx, run.attempt_id, "far", StackDump(serial=1, at_us=NOW, processes=[lone]), NOW)
    turn(yard, job_limits, 2)
    assert run.job.stop == StopReason.HUNG
    assert dict(events(yard, run.job_id))["stacks"] == f"{WORDS}; rank 2 cannot be read: no py-spy"


def test_a_run_of_slow_steps_has_the_time_of_twenty(yard: RecordedContext, job_limits: JobLimits) -> None:
    run = Run(yard, job_limits)
    run.report(4, seconds=60)
    turn(yard, job_limits, 1190)
    assert run.dumps() == []
    turn(yard, job_limits, 20)
    assert len(run.dumps()) == 1


def test_a_run_that_has_made_its_last_step_may_take_its_time(yard: RecordedContext, job_limits: JobLimits) -> None:
    run = Run(yard, job_limits, hang={"after": 10, "factor": 1})
    run.report(3)
    with yard.ctx.db.write() as tx:
        tx.execute(update(Job).where(Job.id == run.job_id).values(step=99, total_steps=100))
    turn(yard, job_limits, 1000)
    assert run.dumps() == []


def test_a_run_that_only_is_to_be_shown_goes_on(yard: RecordedContext, job_limits: JobLimits) -> None:
    run = Run(yard, job_limits, hang={"after": 10, "factor": 1, "action": "show"})
    run.report(3)
    turn(yard, job_limits, 11)
    turn(yard, job_limits, 2)
    assert box.attempt_row(yard.ctx.db, run.attempt_id).hung_us is not None
    run.send()
    turn(yard, job_limits, DUMP_PATIENCE_S + 1)
    assert run.job.state == JobState.RUNNING
    run.report()
    assert box.attempt_row(yard.ctx.db, run.attempt_id).hung_us is None
    assert events(yard, run.job_id)[-1] == ("goes-on", "makes steps again")
    turn(yard, job_limits, 11)
    assert [order.serial for order in run.dumps()] == [2]


def test_a_node_that_sends_no_stacks_does_not_keep_the_run_alive(yard: RecordedContext, job_limits: JobLimits) -> None:
    run = Run(yard, job_limits, hang={"after": 10, "factor": 1})
    run.report(3)
    turn(yard, job_limits, 11)
    turn(yard, job_limits, 2)
    turn(yard, job_limits, DUMP_PATIENCE_S - 5)
    assert run.job.state == JobState.RUNNING
    turn(yard, job_limits, 10)
    assert run.job.stop == StopReason.HUNG
    assert "its stacks could not be had" in events(yard, run.job_id)[-1][1]


def test_what_never_reported_a_step_and_what_the_service_did_not_watch_is_not_taken_for_hanging(
    yard: RecordedContext, job_limits: JobLimits
) -> None:
    mute, run = Run(yard, job_limits), Run(yard, job_limits, ("box-gpu-1",))
    run.report(3)
    job_limits.forget()
    turn(yard, job_limits, 100_000)  # the service was away
    turn(yard, job_limits, 250)
    assert run.dumps() == []
    turn(yard, job_limits, 100)
    assert [order.attempt for order in run.dumps()] == [run.attempt_id]
    assert box.attempt_row(yard.ctx.db, mute.attempt_id).hung_us is None


def test_what_a_tracker_logs_is_a_sign_of_life_and_its_silence_is_none_of_death(
    yard: RecordedContext, job_limits: JobLimits
) -> None:
    script, run = Run(yard, job_limits), Run(yard, job_limits, ("box-gpu-1",))
    run.report(3)
    for one in (script, run):
        one.stream = "tensorboard-rank-0.jsonl"
        one.report(3)
    turn(yard, job_limits, 200)
    run.report()
    turn(yard, job_limits, 200)
    assert run.dumps() == []
    turn(yard, job_limits, 200)
    assert [order.attempt for order in run.dumps()] == [run.attempt_id]
    assert box.attempt_row(yard.ctx.db, script.attempt_id).hung_us is None


# Runs that do nothing


def sample(run: Run, seconds: int, *, use: float | None, name: str = "gpu.0.utilization") -> None:
    """Telemetry of some time, every two seconds, with rounds of the service."""
    values: dict[str, float] = {"cpu.percent": 50.0} if use is None else {"cpu.percent": 50.0, name: use}
    for _ in range(seconds // 2):
        with run.yard.ctx.db.write() as tx:
            of_run = {"node": "box", "attempt_id": run.attempt_id, "time_us": run.yard.clock.us}
            tx.execute(insert(Sample).values(**of_run, values=values))
        turn(run.yard, run.job_limits, 2)


def test_a_run_whose_gpus_do_nothing_is_stopped(yard: RecordedContext, job_limits: JobLimits) -> None:
    run = Run(yard, job_limits, idle_limit=20)
    for use in (0.0, 80.0, 0.0):
        sample(run, 16, use=use)
        assert run.job.state == JobState.RUNNING
    sample(run, 10, use=0.0)
    assert (run.job.state, run.job.stop) == (JobState.STOPPING, StopReason.IDLE)
    assert events(yard, run.job_id)[-1][1] == "stopped because its devices did nothing for its idle_limit of 20s"
    box.finish(yard.ctx.db, run.attempt_id, signal=15, stop=StopReason.IDLE)
    assert (run.job.state, run.job.error["cause"]) == (JobState.FAILED, "idle")


def test_the_owner_is_told_after_half_of_it_and_when_the_devices_work_again(
    yard: RecordedContext, job_limits: JobLimits
) -> None:
    run = Run(yard, job_limits, idle_limit=20)
    for use in (4.0, 80.0, 4.0):
        sample(run, 16, use=use)
    assert [each for each in events(yard, run.job_id) if each[0] in {"idle", "goes-on"}] == [
        ("idle", "its devices have done nothing for 10s: it is stopped at its idle_limit of 20s"),
        ("goes-on", "its devices work again"),
        ("idle", "its devices have done nothing for 10s: it is stopped at its idle_limit of 20s"),
    ]
    assert run.job.state == JobState.RUNNING


def test_the_installation_s_limit_is_of_gpus_and_of_jobs_that_say_nothing(db: Database, tmp_path: Path) -> None:
    box.add_people(db)
    box.add_node(db, devices=2)
    with recorded_context(db, tmp_path, idle_limit_s=20) as yard:
        job_limits = JobLimits(yard.ctx)
        run, own = Run(yard, job_limits), Run(yard, job_limits, ("box-gpu-1",), idle_limit=1000)
        cpu = Run(yard, job_limits, ())
        sample(cpu, 30, use=0.2, name="cpu.percent")
        sample(own, 30, use=0.0)
        assert {each.job.state for each in (run, own, cpu)} == {JobState.RUNNING}
        sample(run, 30, use=0.0)
        assert run.job.stop == StopReason.IDLE
        assert "for this installation's idle limit of 20s" in events(yard, run.job_id)[-1][1]


def test_a_run_that_says_so_waits_again_once_it_was_idle(yard: RecordedContext, job_limits: JobLimits) -> None:
    run = Run(yard, job_limits, idle_limit=20, idle_action="requeue", max_retries=1)
    sample(run, 30, use=0.0)
    box.finish(yard.ctx.db, run.attempt_id, signal=15, stop=StopReason.IDLE, stopped_at_step=7)
    assert (run.job.state, run.job.retries_used) == (JobState.QUEUED, 0)
    assert "idle_action: requeue, no retry is spent" in events(yard, run.job_id)[-1][1]


def test_the_next_run_of_a_job_does_not_pay_for_the_last_one(
    yard: RecordedContext, job_limits: JobLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, stop = Run(yard, job_limits, idle_limit=20, max_retries=1), job_limits._stop_idle

    def after_another_start(row: Any) -> None:
        box.finish(yard.ctx.db, row.id, exit_code=1)
        box.start(yard.ctx.db, row.job_id, ["box-gpu-0"])
        stop(row)

    monkeypatch.setattr(job_limits, "_stop_idle", after_another_start)
    sample(run, 24, use=0.0)
    assert (run.job.state, run.job.attempt, run.job.stop) == (JobState.RUNNING, 2, None)


def test_where_nobody_measures_nothing_is_stopped(yard: RecordedContext, job_limits: JobLimits) -> None:
    run = Run(yard, job_limits, idle_limit=20)
    sample(run, 40, use=None)
    assert run.job.state == JobState.RUNNING


def test_a_run_without_gpus_is_judged_by_its_cpu_time(yard: RecordedContext, job_limits: JobLimits) -> None:
    run = Run(yard, job_limits, (), idle_limit=20)
    sample(run, 30, use=60.0, name="cpu.percent")
    assert run.job.state == JobState.RUNNING
    sample(run, 30, use=0.2, name="cpu.percent")
    assert run.job.stop == StopReason.IDLE
