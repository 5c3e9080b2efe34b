"""The state that a scheduler keeps is the one that it would read anew, and little is read to keep it."""

import gc
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

import pytest
from sqlalchemy import event, insert, select, update

from service import lifecycle
from service.accounting import policy_settings
from service.db.engine import Database
from service.db.models import Account, Attempt, Device, Group, Job, Node, Project
from service.estimation.forecasts import Estimator
from service.scheduler.model.decisions import Start
from service.scheduler.model.jobs import IneligibleReason
from service.scheduler.model.nodes import LinkType
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import decide
from service.scheduler_cache import load, load_jobs
from service.scheduler_cache.load import COMPARE_US, OVERLAP_US, Loader
from tests.support import box
from tests.support.box import GIB, NOW
from torchyard.ids import JobId, new_id, now_us
from torchyard.spec.policy import Policy
from torchyard.states import StopReason

S = 1_000_000


class Kept:
    """A loader that is asked again and again, on a clock that the test turns."""

    def __init__(self, db: Database) -> None:
        self.db = db
        # The rows of `box` carry the real time.
        self.now = now_us()
        self._loader = Loader(disk_floor=GIB, estimator=Estimator())

    def look(self, seconds: float = 1, asked: str | None = None) -> SchedulerState:
        self.now += round(seconds * S)
        with self._loader.snapshot(self.db, self.now, asked) as (_, state):
            return state

    def pass_by(self, seconds: float = 1) -> list[str]:
        """The statements of a pass of the scheduler."""
        self.now += round(seconds * S)
        statements: list[str] = []

        def listen(*seen: Any) -> None:
            statements.append(seen[2])

        event.listen(self.db.engine, "before_cursor_execute", listen)
        with self._loader.live(self.db, self.now):
            event.remove(self.db.engine, "before_cursor_execute", listen)
        return [statement for statement in statements if statement.startswith("SELECT")]


@pytest.fixture
def kept(db: Database) -> Kept:
    box.add_people(db)
    return Kept(db)


def kept_by(loader: Loader) -> list[object]:
    """All objects that the loader keeps."""
    found: dict[int, object] = {}
    left: list[object] = [loader]
    while left:
        one = left.pop()
        if id(one) not in found and not isinstance(one, type | ModuleType | FunctionType):
            found[id(one)] = one
            left += gc.get_referents(one)
    return list(found.values())


def texts(loader: Loader) -> set[str]:
    return {each for each in kept_by(loader) if isinstance(each, str)}


def room(loader: Loader) -> int:
    """Bytes of the tables of all dictionaries and sets, full or not."""
    return sum(sys.getsizeof(each) for each in kept_by(loader) if isinstance(each, dict | set))


def cancel(kept: Kept, jobs: Sequence[str]) -> None:
    """Cancel jobs, and let as much time go by as the loader may take to forget them."""
    with kept.db.write() as tx:
        assert len(lifecycle.cancel_waiting(tx, list(map(JobId, jobs)), "ada", now_us())) == len(jobs)
    kept.now = max(kept.now, now_us())
    for seconds in (1, OVERLAP_US / S, 1):  # a look that goes back comes upon them again
        kept.pass_by(seconds)


def change(kept: Kept, job: str, changed_us: int) -> None:
    """A change whose transaction says when it was made."""
    with kept.db.write() as tx:
        values = {"priority": 3, "changed_us": changed_us, "last_event": Job.last_event + 1}
        tx.execute(update(Job).where(Job.id == job).values(**values))


def fail(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that an error interrupts while it reads jobs."""
    with monkeypatch.context() as broken:
        broken.setattr(load_jobs, "running", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            kept.look()


def test_jobs_come_run_and_go(kept: Kept) -> None:
    (uuid,) = box.add_node(kept.db, devices=1)
    first, second = box.add_job(kept.db), box.add_job(kept.db)
    assert set(kept.look().waiting) == {first, second}
    attempt = box.start(kept.db, first, [uuid])
    state = kept.look()
    assert (set(state.waiting), set(state.running)) == ({second}, {first})
    assert [placement.uuids for placement in state.running[first].placements] == [(uuid,)]
    box.finish(kept.db, attempt)
    assert not kept.look().running


def test_what_runs_on_nccl_goes_to_a_node_with_gpus(kept: Kept) -> None:
    box.add_node(kept.db, "slots", devices=1)
    (gpu,) = box.add_node(kept.db, "tall", devices=1)
    with kept.db.write() as tx:
        tx.execute(update(Device).where(Device.node == "slots").values(kind="cpu"))
    jobs = [
        box.add_job(kept.db, command=None, launcher="auto", recipe={"backend": backend})
        for backend in ("nccl", "nccl", "auto")
    ]
    state = kept.look()
    starts = {each.job: each.placements for each in decide(state, kept.now, Policy()) if isinstance(each, Start)}
    assert starts.keys() == {jobs[0], jobs[2]}
    assert [placement.uuids for placement in starts[jobs[0]]] == [(gpu,)]


def test_a_pass_without_work_asks_two_questions(kept: Kept) -> None:
    box.add_node(kept.db)
    kept.look()
    assert len(kept.pass_by()) == 2


def test_jobs_that_have_not_changed_are_not_read_again(kept: Kept) -> None:
    box.add_node(kept.db, devices=1)
    for _ in range(3):
        box.add_job(kept.db)
    kept.look()
    assert not [statement for statement in kept.pass_by() if "jobs.spec" in statement]


def test_a_transaction_that_is_seen_late_is_seen(kept: Kept) -> None:
    job = box.add_job(kept.db)
    kept.look(60)
    change(kept, job, kept.now - OVERLAP_US + 2 * S)
    assert kept.look(0.1).waiting[job].priority == 1  # most looks go back but for a moment
    assert kept.look(0.5).waiting[job].priority == 3


def test_who_is_asked_about_is_seen_however_late(kept: Kept) -> None:
    """Right after it was submitted, by a transaction that took its time."""
    kept.look()
    job = box.add_job(kept.db)
    change(kept, job, kept.now - OVERLAP_US - S)
    assert not kept.look().waiting
    assert kept.look(asked=job).waiting[job].priority == 3
    assert set(kept.look().waiting) == {job}


def test_one_that_is_seen_later_still_waits_for_the_comparison(kept: Kept) -> None:
    job, gone = box.add_job(kept.db), box.add_job(kept.db)
    kept.look(60)
    change(kept, job, kept.now - 2 * OVERLAP_US)
    with kept.db.write() as tx:
        tx.execute(update(Job).where(Job.id == gone).values(state="cancelled"))
    assert kept.look().waiting[job].priority == 1
    state = kept.look(COMPARE_US / S)
    assert state.waiting[job].priority == 3
    assert gone not in state.waiting


def test_a_clock_that_is_set_back_hides_nothing(kept: Kept) -> None:
    job = box.add_job(kept.db)
    kept.look(7200)
    kept.look(-3600)
    change(kept, job, kept.now)
    assert kept.look().waiting[job].priority == 3


def test_estimates_are_renewed_though_the_clock_is_set_back(kept: Kept) -> None:
    (uuid,) = box.add_node(kept.db, devices=1)
    job = box.add_job(kept.db, time_limit=7200)
    box.start(kept.db, job, [uuid])
    kept.look(60)
    kept.look(-3600)
    for _ in range(2):
        state = kept.look(11)
        remaining = state.running[job].remaining
        assert remaining is not None
        assert remaining.as_of_us == kept.now


def test_a_state_and_its_transaction_show_one_moment_whatever_is_read_meanwhile(kept: Kept) -> None:
    job = box.add_job(kept.db)
    with kept._loader.snapshot(kept.db, kept.now) as (tx, state):
        change(kept, job, kept.now)
        newer = box.add_job(kept.db)
        assert set(kept.look().waiting) == {job, newer}
        assert set(state.waiting) == set(tx.scalars(select(Job.id))) == {job}
        assert state.waiting[job].priority == tx.scalar(select(Job.priority)) == 1


def test_readers_share_what_has_not_changed(kept: Kept) -> None:
    (uuid,) = box.add_node(kept.db, devices=1)
    first, second = box.add_job(kept.db), box.add_job(kept.db)
    before = kept.look()
    with kept.db.write() as tx:
        tx.execute(insert(Account).values(kind="user", name="user-ada", weight=3))
    again = kept.look()
    assert again.waiting is before.waiting
    assert (before.users["user-ada"].weight, again.users["user-ada"].weight) == (1, 3)
    box.start(kept.db, first, [uuid])
    after = kept.look()
    assert (set(before.waiting), set(after.waiting)) == ({first, second}, {second})
    assert (len(before.capacities()["box"].free), len(after.capacities()["box"].free)) == (1, 0)


def test_nothing_is_kept_of_a_job_that_is_over(kept: Kept) -> None:
    box.add_node(kept.db, devices=1)
    job = box.add_job(kept.db)
    kept._loader.order.of(kept.look(), kept.now, Policy())
    assert job in texts(kept._loader)
    cancel(kept, [job])
    assert job not in texts(kept._loader)


def test_jobs_of_one_user_and_project_share_their_names(kept: Kept) -> None:
    first, second = box.add_job(kept.db), box.add_job(kept.db)
    waiting = kept.look().waiting
    assert waiting[first].user is waiting[second].user
    assert waiting[first].project is waiting[second].project


def test_the_room_of_jobs_goes_with_them(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "FEW", 200)
    kept.pass_by()
    empty = room(kept._loader)
    with kept.db.write() as tx:
        jobs = [box.insert_job(tx) for _ in range(200)]
    kept.pass_by()
    full = room(kept._loader)
    cancel(kept, jobs[:-1])
    assert (room(kept._loader) - empty) * 4 < full - empty
    assert set(kept.look().waiting) == set(jobs[-1:])


def test_one_that_is_over_is_not_taken_for_one_that_runs(kept: Kept) -> None:
    (uuid,) = box.add_node(kept.db, devices=1)
    job = box.add_job(kept.db)
    attempt = box.start(kept.db, job, [uuid])
    assert set(kept.look(60).running) == {job}
    box.finish(kept.db, attempt)
    with kept.db.write() as tx:
        tx.execute(update(Job).values(changed_us=kept.now - 2 * OVERLAP_US))
    assert set(kept.look().running) == {job}
    assert not kept.look(asked=job).running


def test_what_an_error_interrupts_is_read_again(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    (uuid,) = box.add_node(kept.db, devices=1)
    job = box.add_job(kept.db)
    box.start(kept.db, job, [uuid])
    fail(kept, monkeypatch)
    assert set(kept.look().running) == {job}


def test_nothing_is_kept_of_a_job_that_ends_after_a_first_look_that_failed(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = box.add_job(kept.db)
    fail(kept, monkeypatch)
    cancel(kept, [job])
    assert not kept.look().waiting


def test_the_comparison_misses_no_job_that_was_to_be_read_anew(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    job = box.add_job(kept.db)
    assert set(kept.look().waiting) == {job}
    for restarts in (0, Policy().restarts):
        with kept.db.write() as tx:
            policy_settings.set_policy(tx, Policy(restarts=restarts))
        if not restarts:
            fail(kept, monkeypatch)
    with kept.db.write() as tx:
        lifecycle.cancel_waiting(tx, [JobId(job)], "ada", now_us())
        tx.execute(update(Job).values(changed_us=kept.now - 2 * OVERLAP_US))
    assert set(kept.look().waiting) == {job}
    assert not kept.look(COMPARE_US / S).waiting


def test_what_one_asks_for_is_its_own(kept: Kept) -> None:
    box.add_node(kept.db)
    job = box.add_job(kept.db)
    mine = kept.look()
    mine.put([replace(mine.waiting[job], priority=0)])
    mine.remove(job)
    assert kept.look().waiting[job].priority == 1


def test_what_hinders_a_job(kept: Kept) -> None:
    (uuid,) = box.add_node(kept.db, devices=1)
    with kept.db.write() as tx:
        sweep = {
            "id": "group-1",
            "number": 1,
            "user_id": "user-ada",
            "project": "default",
            "name": "s",
            "size": 1,
            "created_us": 1,
        }
        tx.execute(insert(Group).values(**sweep, sweep={"running": 4}, paused="all alike"))
    held, blocked, trial, retried = (box.add_job(kept.db, max_retries=2) for _ in range(4))
    with kept.db.write() as tx:
        lifecycle.hold(tx, held, "ada", NOW)
        tx.execute(update(Job).where(Job.id == blocked).values(blocked=True))
        tx.execute(update(Job).where(Job.id == trial).values(group_id="group-1"))
    attempt = box.start(kept.db, retried, [uuid])
    box.finish(kept.db, attempt, exit_code=1)
    with kept.db.write() as tx:
        tx.execute(update(Job).where(Job.id == retried).values(queued_us=kept.now))
        tx.execute(update(Attempt).values(ended_us=kept.now))
    state = kept.look()
    assert {job: state.waiting[job].ineligible for job in (held, blocked, trial, retried)} == {
        held: IneligibleReason.HELD,
        blocked: IneligibleReason.DEPENDENCY,
        trial: IneligibleReason.PAUSED,
        retried: IneligibleReason.SAVING,
    }
    assert state.caps == {"group-1": 4}
    with kept.db.write() as tx:
        tx.execute(update(Group).values(paused=None))
        lifecycle.settle(tx, attempt, "box")
    state = kept.look()
    assert [state.waiting[job].ineligible for job in (trial, retried)] == [None, None]


def test_who_can_be_stopped(kept: Kept) -> None:
    uuids = box.add_node(kept.db, devices=4)
    specs: list[dict[str, Any]] = [{}, {"restartable": True}, {"preemptible": True}, {"preemptible": False}]
    jobs = [box.add_job(kept.db, **spec) for spec in specs]
    attempts = [box.start(kept.db, job, [uuid]) for job, uuid in zip(jobs, uuids, strict=True)]
    state = kept.look()
    assert [state.running[job].preemptible for job in jobs] == [False, True, True, False]
    assert [state.running[job].pinned for job in jobs] == [False, False, False, True]
    assert [state.running[job].starts_over for job in jobs] == [False, True, False, False]
    for attempt in attempts:
        box.add_checkpoint(kept.db, attempt, 10, "committed")
    assert [kept.look().running[job].preemptible for job in jobs] == [False, True, True, False]
    for attempt in attempts:
        box.add_checkpoint(kept.db, attempt, 20, at_us=NOW + 9)
    state = kept.look()
    assert [state.running[job].preemptible for job in jobs] == [True, True, True, False]
    assert {running.saved_us for running in state.running.values()} == {NOW + 9}
    assert not any(running.starts_over for running in state.running.values())
    with kept.db.write() as tx:
        lifecycle.request_stop(tx, jobs[0], StopReason.CANCEL, "ada", NOW)
    assert not kept.look().running[jobs[0]].preemptible


def test_a_change_of_restarts_is_in_the_next_look(kept: Kept) -> None:
    """Of a project's, of the policy's list of projects, and of how often: nothing of the jobs themselves changes."""
    (uuid,) = box.add_node(kept.db, devices=1)
    plain: dict[str, Any] = {"command": ["python", "train.py"], "launcher": "python", "code": new_id("snap")}
    runs, waits = (box.add_job(kept.db, **plain) for _ in range(2))
    box.start(kept.db, runs, [uuid])

    def may() -> tuple[bool, bool]:
        state = kept.look()
        return state.running[runs].restartable, state.waiting[waits].restartable

    assert may() == (True, True)
    for value in (False, True):
        with kept.db.write() as tx:
            tx.execute(update(Project).where(Project.name == "default").values(restarts=value))
        assert may() == (value, value)
    for policy, expected in (
        (Policy(no_restarts=["default"]), False),
        (Policy(), True),
        (Policy(restarts=0), False),
        (Policy(restarts=1), True),
    ):
        with kept.db.write() as tx:
            policy_settings.set_policy(tx, policy)
        assert may() == (expected, expected)


def test_nodes_as_they_are(kept: Kept) -> None:
    box.add_node(kept.db, devices=2, labels=["fast"])
    other = box.add_node(kept.db, "other", devices=1)
    topology = {"numa": 1, "links": {"box-gpu-1": "nvlink", "box-gpu-2": "carrier pigeon"}}
    with kept.db.write() as tx:
        tx.execute(update(Device).where(Device.uuid == "box-gpu-0").values(topology=topology))
        tx.execute(update(Device).where(Device.uuid == "box-gpu-1").values(foreign_memory=20 * GIB))
    before = kept.look().nodes
    slot = before["box"].slots[0]
    assert (before["box"].labels, slot.numa, slot.links) == ({"fast"}, 1, {"box-gpu-1": LinkType.NVLINK})
    assert [slot.memory for slot in before["box"].slots] == [80 * GIB, 60 * GIB]
    with kept.db.write() as tx:
        tx.execute(update(Node).where(Node.name == "other").values(draining=True))
        stuck = {"code": "outlives-kill", "message": "stuck", "params": {"pid": 7}}
        tx.execute(update(Device).where(Device.uuid == other[0]).values(unusable="stuck", findings=[stuck]))
    after = kept.look().nodes
    assert after["box"] is before["box"]
    assert (after["other"].closed, after["other"].slots[0].unusable) == ("draining", "stuck")
    assert after["other"].slots[0].finding == stuck
    with kept.db.write() as tx:
        tx.execute(update(Node).where(Node.name == "box").values(disk_free=GIB // 2))
    full = kept.look().nodes["box"]
    assert (full.closed, full.low_disk) == ("disk-floor", ("512.0 MiB", "1.0 GiB"))


def test_accounts_by_user_and_project(kept: Kept) -> None:
    with kept.db.write() as tx:
        tx.execute(insert(Account).values(kind="user", name="*", max_gpus=4))
        tx.execute(insert(Account).values(kind="project", name="default", weight=3.0))
    state = kept.look()
    assert (state.users["user-ada"].max_gpus, state.projects["default"].weight) == (4, 3.0)
