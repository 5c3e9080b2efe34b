"""Preemption over a real database, from the decision to the preemptor's start, on a clock that the tests turn."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from service import lifecycle
from service.accounting.policy_settings import set_policy
from service.controllers.scheduling import Scheduler
from service.db.engine import Database
from service.db.leader import Leader
from service.db.models import Account, Attempt, Group, Job, Node, Output, Project, Reservation
from service.db.records.attempts import PendingPreemption
from service.db.unit_of_work import unit_of
from service.infra.observability import Counters
from service.jobs import present
from service.scheduler.model.decisions import Cause, Preempt
from service.scheduler.policy.decide import SchedulingPass
from service.scheduler.policy.order import PERIOD_US
from tests.support import box
from tests.support.box import NOW
from tests.support.recorded_context import RecordedContext, recorded_context
from tests.support.storage import check_sums
from torchyard.ids import JobId, new_id
from torchyard.spec.policy import Policy
from torchyard.states import JobState, StopReason
from torchyard.wire import Action, Prepared

HOUR = 3600


class Yard:
    """A scheduler that can be restarted at any moment."""

    def __init__(self, db: Database, folder: Path) -> None:
        self.db, self._folder = db, folder
        self.clock_s = 0.0
        self._opened = self._open()

    def _open(self) -> tuple[Any, RecordedContext, Leader]:
        manager = recorded_context(self.db, self._folder)
        made = manager.__enter__()
        made.clock.sleep(self.clock_s)
        return manager, made, Leader(self.db)

    @property
    def context(self) -> RecordedContext:
        return self._opened[1]

    def close(self) -> None:
        self._opened[2].resign()
        self._opened[0].__exit__(None, None, None)

    def restart(self) -> None:
        """A new service on the same database: nothing is left of the old one's memory."""
        self.close()
        self._opened = self._open()

    def run(self, seconds: float = 1) -> int:
        """A pass, after some time."""
        self.clock_s += seconds
        self.context.clock.sleep(seconds)
        return Scheduler(self.context.ctx, self._opened[2], Counters()).run_pass()

    @property
    def now(self) -> int:
        return self.context.clock.us

    def order(self, node: str = "box") -> Action:
        """What the node is to do with its only attempt."""
        with self.db.read() as tx:
            (order,) = lifecycle.orders_for(tx, node).orders
        return order.action

    def order_of(self, attempt: str, node: str = "box") -> Action:
        """What the node is to do with this attempt."""
        with self.db.read() as tx:
            return next(one.action for one in lifecycle.orders_for(tx, node).orders if one.attempt == attempt)

    def stopped(self, attempt: str, step: int, **values: Any) -> None:
        """The node's result of a stop, with the checkpoint of its last step."""
        box.add_checkpoint(self.db, attempt, step, at_us=self.now)
        box.finish(self.db, attempt, stop=StopReason.PREEMPT, stopped_at_step=step, ended_us=self.now, **values)
        with self.db.write() as tx:
            lifecycle.settle(tx, attempt, "box")


@pytest.fixture
def yard(db: Database, tmp_path: Path) -> Iterator[Yard]:
    box.add_people(db)
    made = Yard(db, tmp_path)
    yield made
    made.close()


def old_job(yard: Yard, uuids: list[str], node: str = "box", **spec: Any) -> tuple[str, str]:
    """A job of a low class that runs and has a verified checkpoint of step 100."""
    job = box.add_job(yard.db, len(uuids), priority="low", **spec)
    attempt = box.start(yard.db, job, uuids, node)
    box.add_checkpoint(yard.db, attempt, 100)
    return job, attempt


def kinds(yard: Yard, job: str) -> list[str]:
    return [kind for kind, _ in box.events(yard.db, job)]


def test_a_checkpoint_first_then_the_stop_then_the_preemptor(yard: Yard) -> None:
    job, attempt = old_job(yard, box.add_node(yard.db, devices=1))
    urgent = box.add_job(yard.db, priority="urgent")
    yard.context.forget()
    assert yard.run(HOUR) == 0
    assert yard.order() is Action.CHECKPOINT
    assert ("nudge", "box") in yard.context.sent
    assert yard.context.woken.is_set()
    assert {f"job:{job}", f"job:{urgent}", "jobs", "queue"} <= set(yard.context.topics)
    assert box.events(yard.db, urgent)[-1] == ("awaiting", "job 1 is to be preempted for it")
    assert yard.run() == 0
    assert yard.order() is Action.CHECKPOINT
    box.add_checkpoint(yard.db, attempt, 340, "committed", at_us=yard.now)
    yard.run()
    assert yard.order() is Action.CHECKPOINT
    box.add_checkpoint(yard.db, attempt, 341, at_us=yard.now)
    yard.run()
    assert yard.order() is Action.STOP
    assert yard.run() == 0
    yard.stopped(attempt, 345)
    row = box.job_row(yard.db, job)
    assert (row.state, row.preemptions, row.retries_used, row.eligible_us) == (JobState.QUEUED, 1, 0, NOW)
    assert row.ran_us == yard.now - (NOW + 2)
    with yard.db.read() as tx:
        (shown,) = present.jobs(tx, [job], None)
    assert (shown.ran_s, shown.running_since) == (row.ran_us / 1e6, None)
    assert shown.running_s(shown.created_at + timedelta(days=1)) == shown.ran_s  # it waits again
    assert yard.run() == 1
    assert box.job_row(yard.db, urgent).state == JobState.ASSIGNED
    assert box.job_row(yard.db, job).state == JobState.QUEUED
    told = [message for kind, message in box.events(yard.db, job) if kind not in ("checkpoint", "claimed")]
    assert told[3:] == [
        "is to be preempted for job 2 (ada), urgent, which is of a higher class: asked to write a checkpoint first",
        "preempted for job 2 (ada), urgent: its checkpoint of step 341 is verified",
        "preempted for job 2 (ada), urgent after a checkpoint at step 345; resumes from step 345",
    ]
    for kind in ("preempting", "stop-requested", "requeued"):
        found = box.told(yard.db, job, kind)
        assert found["preemptor"] == "job 2 (ada), urgent"
        assert found["preemptor_params"] == {"number": 2, "user": "ada", "priority": "urgent"}
    assert box.told(yard.db, job, "stop-requested")["step"] == 341


def test_it_resumes_where_it_was(yard: Yard) -> None:
    job, attempt = old_job(yard, box.add_node(yard.db, devices=1))
    urgent = box.add_job(yard.db, priority="urgent")
    yard.run(HOUR)
    box.add_checkpoint(yard.db, attempt, 200, at_us=yard.now)
    yard.run()
    yard.stopped(attempt, 205)
    yard.run()
    with yard.db.read() as tx:
        newest = tx.scalar(select(Attempt.id).order_by(Attempt.id.desc()))
    assert newest is not None
    yard.context.clock.sleep(1)
    with yard.db.write() as tx:
        lifecycle.claim(tx, newest, "box", "nonce", yard.now)
    box.finish(yard.db, newest)
    assert box.job_row(yard.db, urgent).state == JobState.SUCCEEDED
    assert yard.run() == 1
    row = box.job_row(yard.db, job)
    assert (row.state, row.attempt) == (JobState.ASSIGNED, 2)


def test_a_checkpoint_that_never_comes_ends_the_preemption(yard: Yard) -> None:
    job, attempt = old_job(yard, box.add_node(yard.db, devices=1))
    urgent = box.add_job(yard.db, priority="urgent")
    yard.run(HOUR)
    yard.run(299)
    assert box.attempt_row(yard.db, attempt).yielding is not None
    yard.run(2)
    row = box.attempt_row(yard.db, attempt)
    assert (row.yielding, row.state) == (None, "running")
    assert row.spared_until_us > yard.now
    kind, message = box.events(yard.db, job)[-1]
    assert kind == "preemption-abandoned"
    assert message.startswith("keeps its devices: no checkpoint was verified within 300 s")
    assert box.events(yard.db, urgent)[-1] == (
        "awaiting-abandoned",
        "job 1 keeps its devices, for job 1 brought no verified checkpoint within 300 s: this job waits on, and job 1 "
        "is not asked again for 600 s",
    )
    yard.run()
    yard.run()
    assert kinds(yard, job).count("preempting") == 1
    yard.run(HOUR)
    assert kinds(yard, job).count("preempting") == 2


def test_a_service_that_is_killed_between_the_steps_goes_on(yard: Yard) -> None:
    job, attempt = old_job(yard, box.add_node(yard.db, devices=1))
    urgent = box.add_job(yard.db, priority="urgent")
    yard.run(HOUR)
    yard.restart()
    yard.run()
    assert kinds(yard, job).count("preempting") == 1
    box.add_checkpoint(yard.db, attempt, 200, at_us=yard.now)
    yard.restart()
    yard.run()
    assert yard.order() is Action.STOP
    yard.restart()
    yard.run()
    assert kinds(yard, job).count("stop-requested") == 1
    yard.stopped(attempt, 201)
    yard.restart()
    assert yard.run() == 1
    assert box.job_row(yard.db, urgent).state == JobState.ASSIGNED


def test_a_service_that_takes_over_keeps_the_promises_that_it_has_not_seen(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another led, it has answered what is in the queue, and missed who stopped for whom between two answers."""
    seen: list[list[str]] = []
    monkeypatch.setattr(SchedulingPass, "run", lambda done: seen.append(list(done._state.promised)) or [])
    _, attempt = old_job(yard, box.add_node(yard.db, devices=1))
    urgent = box.add_job(yard.db, priority="urgent")
    with recorded_context(yard.db, tmp_path / "standby") as standby:
        with standby.ctx.loader.snapshot(yard.db, standby.clock.us):
            pass
        with yard.db.write() as tx:
            pending = PendingPreemption(preemptor=urgent, words="job 2 (ada), urgent", asked_us=0, deadline_us=1)
            tx.execute(update(Attempt).values(yielding=pending.model_dump(by_alias=True)))
        yard.stopped(attempt, 105)
        leader = Leader(yard.db)
        scheduler = Scheduler(standby.ctx, leader, Counters())
        scheduler.run()
        with yard.db.write() as tx:
            lifecycle.hold(tx, urgent, "ada", yard.now)
        scheduler.run()
        leader.resign()
    assert seen == [[urgent], []]


def test_a_preemptor_that_is_cancelled_leaves_the_job_alone(yard: Yard) -> None:
    job, attempt = old_job(yard, box.add_node(yard.db, devices=1))
    urgent = box.add_job(yard.db, priority="urgent")
    yard.run(HOUR)
    with yard.db.write() as tx:
        lifecycle.request_stop(tx, urgent, StopReason.CANCEL, "ada", yard.now)
    yard.run()
    row = box.attempt_row(yard.db, attempt)
    assert (row.yielding, row.spared_until_us, row.state) == (None, None, "running")
    assert box.events(yard.db, job)[-1][1] == "keeps its devices: job 2 (ada), urgent, no longer waits"
    assert kinds(yard, urgent)[-1] == "cancelled"
    box.add_checkpoint(yard.db, attempt, 200, at_us=yard.now)
    yard.run()
    assert box.job_row(yard.db, job).state == JobState.RUNNING


@pytest.mark.parametrize("hinder", ["quota", "drain"])
def test_nobody_is_stopped_for_a_preemptor_that_would_not_start_any_more(yard: Yard, hinder: str) -> None:
    job, attempt = old_job(yard, box.add_node(yard.db, devices=1))
    urgent = box.add_job(yard.db, priority="urgent")
    yard.run(HOUR)
    with yard.db.write() as tx:
        if hinder == "quota":
            tx.execute(insert(Account).values(kind="user", name="*", max_gpus=0))
        else:
            tx.execute(update(Node).values(draining=True))
    box.add_checkpoint(yard.db, attempt, 200, at_us=yard.now)
    yard.run()
    assert box.job_row(yard.db, job).state == JobState.RUNNING
    assert box.attempt_row(yard.db, attempt).yielding is None
    assert box.events(yard.db, job)[-1][1].endswith("urgent, would not start there any more")
    told = ("awaiting-abandoned", "job 1 is no longer to be preempted for it: it would not start there any more")
    assert box.events(yard.db, urgent)[-1] == told


def test_a_job_that_is_drained_makes_room_for_nobody_there(yard: Yard) -> None:
    job, attempt = old_job(yard, box.add_node(yard.db, devices=1))
    urgent = box.add_job(yard.db, priority="urgent")
    yard.run(HOUR)
    with yard.db.write() as tx:
        tx.execute(update(Node).values(draining=True))
        lifecycle.request_stop(tx, job, StopReason.DRAIN, "ada", yard.now)
    yard.run()
    yard.run()
    row = box.attempt_row(yard.db, attempt)
    assert (row.yielding, row.state) == (None, "stopping")
    assert kinds(yard, urgent)[-2:] == ["awaiting", "awaiting-abandoned"]
    assert box.events(yard.db, job)[-1][1].startswith("is preempted for nobody: job 2")
    yard.stopped(attempt, 101)
    assert yard.run() == 0
    assert [box.job_row(yard.db, each).state for each in (job, urgent)] == [JobState.QUEUED] * 2


def test_a_job_that_ends_by_itself_makes_room(yard: Yard) -> None:
    job, attempt = old_job(yard, box.add_node(yard.db, devices=1))
    urgent = box.add_job(yard.db, priority="urgent")
    yard.run(HOUR)
    box.finish(yard.db, attempt)
    assert yard.run() == 1
    assert box.job_row(yard.db, job).state == JobState.SUCCEEDED
    assert box.job_row(yard.db, urgent).state == JobState.ASSIGNED


def test_a_restartable_job_without_checkpoints_is_stopped_at_once(yard: Yard) -> None:
    (uuid,) = box.add_node(yard.db, devices=1)
    job = box.add_job(yard.db, priority="low", restartable=True)
    attempt = box.start(yard.db, job, [uuid])
    box.add_job(yard.db, priority="urgent")
    yard.run(HOUR)
    yard.run()
    assert yard.order() is Action.STOP
    box.finish(yard.db, attempt, signal=15, stop=StopReason.PREEMPT, terminated=True)
    assert box.job_row(yard.db, job).state == JobState.QUEUED


PLAIN = {"command": ["python", "train.py"], "launcher": "python", "code": new_id("snap")}
#: Long after the start, and before the end of a trial in which no step was made.
ON_TRIAL_S, TRIED_S = 62, 361


def on_trial(yard: Yard, uuids: list[str], **spec: Any) -> tuple[str, str]:
    """A job that can save nothing, has just started, and tells nothing."""
    job = box.add_job(yard.db, len(uuids), **(PLAIN | spec))
    attempt = box.start(yard.db, job, uuids)
    with yard.db.write() as tx:
        tx.execute(insert(Output).values(**TRIAL_OUTPUT, job_id=job, attempt_id=attempt))
    return job, attempt


TRIAL_OUTPUT = {
    "root": "output", "node_rank": 0, "path": "model.pt", "size": 1, "sha256": "", "mode": 0o644, "state": "on-node",
    "wanted": False,
}  # fmt: skip


def outputs(yard: Yard, job: str) -> int:
    with yard.db.read() as tx:
        return tx.scalar(select(func.count()).select_from(Output).where(Output.job_id == job)) or 0


def test_a_new_job_is_tried_in_the_place_of_one_whose_trial_is_over(yard: Yard) -> None:
    job, attempt = on_trial(yard, box.add_node(yard.db, devices=1))
    stored = TRIAL_OUTPUT | {"path": "kept.pt", "state": "stored", "size": 7}
    with yard.db.write() as tx:
        tx.execute(insert(Output).values(**stored, job_id=job, attempt_id=attempt))
        unit_of(tx).count_stored(JobId(job), 7)
    new = box.add_job(yard.db, **PLAIN)
    yard.run(ON_TRIAL_S)
    assert yard.order() is Action.RUN
    yard.run(TRIED_S - ON_TRIAL_S)
    yard.run()
    assert yard.order() is Action.STOP
    assert (outputs(yard, job), check_sums(yard.db)) == (2, 7)
    box.finish(yard.db, attempt, signal=15, stop=StopReason.PREEMPT, terminated=True, ended_us=yard.now)
    row = box.job_row(yard.db, job)
    assert (row.state, row.restarts, row.retries_used, row.preemptions) == (JobState.QUEUED, 1, 0, 0)
    assert (outputs(yard, job), check_sums(yard.db)) == (0, 0)
    with yard.db.read() as tx:
        assert [each.put_back for each in present.attempts(tx, JobId(job))] == [True]
    assert yard.run() == 1
    assert box.job_row(yard.db, new).state == JobState.ASSIGNED
    told = dict(box.events(yard.db, job))
    assert told["put-back"].endswith("it starts from the beginning in its turn; no retry is spent")
    assert told["requeued"].endswith("; starts from the beginning")


def test_a_trial_counts_as_lost_and_not_for_the_share(yard: Yard) -> None:
    _, attempt = on_trial(yard, box.add_node(yard.db, devices=1))
    box.add_job(yard.db, **PLAIN)
    yard.run(TRIED_S)
    yard.run()
    box.finish(yard.db, attempt, signal=15, stop=StopReason.PREEMPT, terminated=True, ended_us=yard.now)
    with yard.db.read() as tx:
        assert tx.scalars(select(Account.usage)).all() in ([], [0.0, 0.0])
    (day,) = box.attempt_row(yard.db, attempt).gpu_time.values()
    assert day.keys() == {"lost"}


def test_what_is_kept_for_a_wide_job_is_left_again_after_the_trial(yard: Yard) -> None:
    """The holder of the other slot cannot be stopped, and is expected to be gone soon; the one on trial is not."""
    first, second = box.add_node(yard.db, devices=2)
    holder = box.add_job(yard.db, preemptible=False, time_limit=1200)
    box.start(yard.db, holder, [second])
    job, attempt = on_trial(yard, [first])
    box.add_job(yard.db, 2, priority="high")
    yard.run(TRIED_S)
    assert yard.order_of(attempt) is Action.STOP
    told = dict(box.events(yard.db, job))["put-back"]
    assert told.startswith("put back for job 3 (ada), high, for which its devices are kept: ")
    for kind in ("put-back", "stop-requested"):
        params = box.told(yard.db, job, kind)["preemptor_params"]
        assert params == {"number": 3, "user": "ada", "priority": "high", "kept": True}
    box.finish(yard.db, attempt, signal=15, stop=StopReason.PREEMPT, terminated=True, ended_us=yard.now)
    assert yard.run() == 0
    assert box.job_row(yard.db, job).state == JobState.QUEUED


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ({"restartable": False}, {}),
        ({"launcher": "none"}, {}),
        ({"live": "/data/run", "code": None}, {}),
        ({"preemptible": False}, {}),
        ({}, {"restarts": 0}),
        ({}, {"no_restarts": ["default"]}),
    ],
)
def test_who_must_not_start_over_goes_on(yard: Yard, spec: dict[str, Any], policy: dict[str, Any]) -> None:
    with yard.db.write() as tx:
        set_policy(tx, Policy.model_validate(policy))
    on_trial(yard, box.add_node(yard.db, devices=1), **spec)
    box.add_job(yard.db, **PLAIN)
    yard.run(TRIED_S)
    assert yard.order() is Action.RUN


def test_no_job_of_a_project_that_wants_no_restarts_is_put_back(yard: Yard) -> None:
    on_trial(yard, box.add_node(yard.db, devices=1))
    box.add_job(yard.db, **PLAIN)
    with yard.db.write() as tx:
        tx.execute(update(Project).values(restarts=False))
    yard.run(TRIED_S)
    assert yard.order() is Action.RUN


def test_nobody_is_put_back_more_than_twice(yard: Yard) -> None:
    job, _ = on_trial(yard, box.add_node(yard.db, devices=1))
    with yard.db.write() as tx:
        tx.execute(update(Job).where(Job.id == job).values(restarts=2))
    box.add_job(yard.db, **PLAIN)
    yard.run(TRIED_S)
    assert yard.order() is Action.RUN


def test_a_job_that_never_wrote_a_checkpoint_is_left_alone(yard: Yard) -> None:
    (uuid,) = box.add_node(yard.db, devices=1)
    job = box.add_job(yard.db, priority="low")
    box.start(yard.db, job, [uuid])
    box.add_job(yard.db, priority="urgent")
    yard.run(HOUR)
    assert yard.order() is Action.RUN


def test_several_jobs_give_way_together_or_not_at_all(yard: Yard) -> None:
    first, second = box.add_node(yard.db, devices=2)
    one, two = old_job(yard, [first]), old_job(yard, [second])
    box.add_job(yard.db, 2, priority="urgent")
    yard.run(HOUR)
    assert [kinds(yard, job).count("preempting") for job, _ in (one, two)] == [1, 1]
    box.add_checkpoint(yard.db, one[1], 200, at_us=yard.now)
    yard.run()
    assert box.job_row(yard.db, one[0]).state == JobState.RUNNING
    box.add_checkpoint(yard.db, two[1], 200, at_us=yard.now)
    yard.run()
    assert [box.job_row(yard.db, job).state for job, _ in (one, two)] == [JobState.STOPPING] * 2


def test_one_that_cannot_give_way_spares_the_other(yard: Yard) -> None:
    first, second = box.add_node(yard.db, devices=2)
    one, two = old_job(yard, [first]), old_job(yard, [second])
    urgent = box.add_job(yard.db, 2, priority="urgent")
    yard.run(HOUR)
    box.add_checkpoint(yard.db, one[1], 200, at_us=yard.now)
    yard.run(301)
    assert [box.job_row(yard.db, job).state for job, _ in (one, two)] == [JobState.RUNNING] * 2
    assert [box.attempt_row(yard.db, attempt).spared_until_us is None for _, attempt in (one, two)] == [True, False]
    (told,) = [message for kind, message in box.events(yard.db, urgent) if kind == "awaiting-abandoned"]
    late = "for job 2 brought no verified checkpoint within 300 s"
    assert told.startswith(f"job 1 and job 2 keep their devices, {late}")
    assert told.endswith("this job waits on, and job 2 is not asked again for 600 s")


def test_of_jobs_with_different_causes_none_is_asked_if_one_is_over(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = box.add_node(yard.db, devices=2)
    (one, _), (two, attempt) = old_job(yard, [first]), old_job(yard, [second])
    urgent = box.add_job(yard.db, 2, priority="urgent")
    causes = {one: Cause.CLASS, two: Cause.SHARE}
    asked = [Preempt(job=job, for_job=urgent, reason=cause) for job, cause in causes.items()]
    monkeypatch.setattr(SchedulingPass, "run", lambda _: asked)
    box.finish(yard.db, attempt)
    yard.run(HOUR)
    assert kinds(yard, one).count("preempting") == 0


def test_a_preemptor_whose_sweep_is_paused_meanwhile_leaves_the_job_alone(yard: Yard) -> None:
    job, attempt = old_job(yard, box.add_node(yard.db, devices=1))
    urgent = box.add_job(yard.db, priority="urgent")
    group = {"id": "grp-1", "number": 9, "name": "tune", "sweep": {}, "size": 1, "created_us": NOW}
    with yard.db.write() as tx:
        tx.execute(insert(Group).values(**group, user_id="user-ada", project="default"))
        tx.execute(update(Job).where(Job.id == urgent).values(group_id="grp-1"))
    yard.run(HOUR)
    assert kinds(yard, job)[-1] == "preempting"
    with yard.db.write() as tx:
        tx.execute(update(Group).values(paused="the first trial failed"))
    box.add_checkpoint(yard.db, attempt, 200, at_us=yard.now)
    yard.run()
    assert (box.job_row(yard.db, job).state, kinds(yard, job)[-1]) == (JobState.RUNNING, "preemption-abandoned")


def test_a_job_on_several_nodes_gives_way_on_all(yard: Yard) -> None:
    uuids = {name: box.add_node(yard.db, name, devices=1) for name in ("a", "b")}
    job = box.add_job(yard.db, priority="low", resources={"nodes": 2})
    attempt = box.spread(yard.db, job, uuids)
    with yard.db.write() as tx:
        for node in uuids:
            lifecycle.claim(tx, attempt, node, "nonce", NOW)
            lifecycle.prepared(tx, attempt, node, Prepared(address="10.0.0.1", port=1), NOW)
        lifecycle.mark_running(tx, attempt, NOW + 2)
    box.add_checkpoint(yard.db, attempt, 100)
    box.add_job(yard.db, priority="urgent", resources={"nodes": 2})
    yard.run(HOUR)
    assert [yard.order(node) for node in uuids] == [Action.CHECKPOINT] * 2
    box.add_checkpoint(yard.db, attempt, 200, at_us=yard.now)
    yard.run()
    assert [yard.order(node) for node in uuids] == [Action.STOP] * 2


def test_jobs_give_way_to_one_that_has_waited_for_too_long(yard: Yard) -> None:
    job, _ = old_job(yard, box.add_node(yard.db, devices=1))
    box.add_job(yard.db, priority="low")
    periods = 2 + Policy().longest_wait * 1_000_000 // PERIOD_US
    yard.run((periods * PERIOD_US - NOW % PERIOD_US) / 1e6)
    kind, message = box.events(yard.db, job)[-1]
    assert (kind, yard.order()) == ("preempting", Action.CHECKPOINT)
    assert "job 2 (ada), low, which has waited for too long: asked" in message


def test_a_reservation_has_jobs_give_way_each_by_itself(yard: Yard) -> None:
    first, second = box.add_node(yard.db, devices=2)
    one, two = old_job(yard, [first]), old_job(yard, [second])
    with yard.db.write() as tx:
        tx.execute(
            insert(Reservation).values(
                id="resv-1",
                name="demo",
                maintenance=False,
                users=["user-ben"],
                projects=[],
                nodes=["box"],
                gpus=None,
                starts_us=NOW + (HOUR + 60) * 1_000_000,
                ends_us=NOW + 9 * HOUR * 1_000_000,
                created_by="user-ada",
                created_us=NOW,
            )
        )
    yard.run(HOUR)
    box.add_checkpoint(yard.db, one[1], 200, at_us=yard.now)
    yard.run()
    assert [box.job_row(yard.db, job).state for job, _ in (one, two)] == [JobState.STOPPING, JobState.RUNNING]
    events = dict(box.events(yard.db, one[0]))
    assert "reservation demo, for which its devices are reserved: asked" in events["preempting"]
    assert "reservation demo" in events["stop-requested"]
    assert box.told(yard.db, one[0], "preempting")["preemptor_params"] == {"name": "demo", "maintenance": False}
