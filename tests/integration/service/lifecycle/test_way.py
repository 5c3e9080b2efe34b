"""The way a job takes through its states, on both databases."""

import pytest
from sqlalchemy import select, update

from service import lifecycle
from service.db.engine import Database
from service.db.models import Allocation, Checkpoint, Event, Job
from service.db.unit_of_work import unit_of
from tests.support import box, statements
from tests.support.box import GIB, NOW
from torchyard.ids import new_id
from torchyard.states import JobState, StopReason
from torchyard.wire import Action, AttemptReport, Phase, ResultKind


@pytest.fixture
def gpus(db: Database) -> list[str]:
    box.add_people(db)
    return box.add_node(db)


def kinds(db: Database, job_id: str) -> list[str]:
    with db.read() as tx:
        return list(tx.scalars(select(Event.kind).where(Event.job_id == job_id).order_by(Event.seq)))


def held(db: Database) -> set[str]:
    with db.read() as tx:
        return set(tx.scalars(select(Allocation.uuid).where(Allocation.live)))


def test_a_job_runs_and_ends(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db, gpus=2)
    attempt_id = box.start(db, job_id, gpus)
    assert held(db) == set(gpus)
    assert box.job_row(db, job_id).state == JobState.RUNNING
    assert box.finish(db, attempt_id) is JobState.SUCCEEDED
    job = box.job_row(db, job_id)
    assert (job.state, job.attempt, job.started_us, job.ended_us) == ("succeeded", 1, NOW + 2, NOW + 3)
    assert held(db) == set()
    assert kinds(db, job_id) == ["submitted", "assigned", "claimed", "running", "succeeded"]


SPARED = "; it held 11.0 GiB at most of the 40.0 GiB that it asked for of each GPU"


@pytest.mark.parametrize(
    ("asked", "held", "told"),
    [
        ({"gpu_share": 40 * GIB}, 11 * GIB, SPARED),
        (
            {"gpu_memory_min": 40 * GIB},
            11 * GIB,
            SPARED,
        ),
        ({"gpu_memory_min": 40 * GIB}, 30 * GIB, ""),
        ({"gpu_memory_min": 40 * GIB}, None, ""),
        ({}, 11 * GIB, ""),
    ],
)
def test_it_is_said_how_much_of_a_gpu_was_asked_for_in_vain(
    db: Database, gpus: list[str], asked: dict[str, int], held: int | None, told: str
) -> None:
    job_id = box.add_job(db, resources=asked)
    box.finish(db, box.start(db, job_id, gpus[:1]), gpu_memory_peak=held)
    assert box.events(db, job_id)[-1] == ("succeeded", f"exited with code 0{told}")


def test_events_count_from_one_without_gaps(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    box.finish(db, box.start(db, job_id, gpus[:1]))
    with db.read() as tx:
        rows = tx.execute(select(Event.seq, Event.attempt).where(Event.job_id == job_id).order_by(Event.seq)).all()
    assert [row.seq for row in rows] == [1, 2, 3, 4, 5]
    assert [row.attempt for row in rows] == [None, 1, 1, 1, 1]


def test_a_held_gpu_is_given_to_nobody_else(db: Database, gpus: list[str]) -> None:
    box.assign(db, box.add_job(db), gpus[:1])
    second = box.add_job(db, gpus=2)
    with pytest.raises(lifecycle.Conflict, match="held by another attempt"):
        box.assign(db, second, gpus)
    assert box.job_row(db, second).state == JobState.QUEUED
    assert held(db) == set(gpus[:1])


def test_a_held_job_and_an_unusable_gpu_are_not_assigned(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    with db.write() as tx:
        lifecycle.hold(tx, job_id, "ada", NOW)
    with pytest.raises(lifecycle.Conflict, match="held"):
        box.assign(db, job_id, gpus[:1])
    with db.write() as tx:
        lifecycle.release_hold(tx, job_id, "ada", NOW)
    with pytest.raises(lifecycle.Conflict, match="cannot give box-gpu-9"):
        box.assign(db, job_id, ["box-gpu-9"])
    assert kinds(db, job_id) == ["submitted", "held", "released"]


def test_only_the_nonce_that_claimed_may_claim_again(db: Database, gpus: list[str]) -> None:
    attempt_id = box.assign(db, box.add_job(db), gpus[:1])
    for _ in range(2):
        with db.write() as tx:
            lifecycle.claim(tx, attempt_id, "box", "mine", NOW)
    with pytest.raises(lifecycle.Conflict), db.write() as tx:
        lifecycle.claim(tx, attempt_id, "box", "another", NOW)


def test_another_node_cannot_claim(db: Database, gpus: list[str]) -> None:
    box.add_node(db, "other")
    attempt_id = box.assign(db, box.add_job(db), gpus[:1])
    with pytest.raises(lifecycle.Unknown), db.write() as tx:
        lifecycle.claim(tx, attempt_id, "other", "nonce", NOW)


def test_an_unclaimed_attempt_goes_back_and_can_no_longer_be_claimed(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    attempt_id = box.assign(db, job_id, gpus[:1])
    with db.write() as tx:
        lifecycle.void(tx, attempt_id, "nobody claimed it", NOW)
    job = box.job_row(db, job_id)
    assert (job.state, job.retries_used) == (JobState.QUEUED, 0)
    assert held(db) == set()
    with pytest.raises(lifecycle.Conflict), db.write() as tx:
        lifecycle.claim(tx, attempt_id, "box", "late", NOW)
    with pytest.raises(lifecycle.Conflict), db.write() as tx:
        lifecycle.void(tx, attempt_id, "again", NOW)


def test_a_repeated_result_changes_nothing(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    attempt_id = box.start(db, job_id, gpus[:1])
    box.finish(db, attempt_id, exit_code=1)
    before = box.job_row(db, job_id)
    assert box.finish(db, attempt_id, exit_code=0) is JobState.FAILED
    assert box.job_row(db, job_id) == before


def test_a_failure_is_retried_from_the_newest_checkpoint(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db, max_retries=1)
    first = box.start(db, job_id, gpus[:1])
    for step, state in ((100, "stored"), (200, "stored"), (300, "committed")):
        add_checkpoint(db, job_id, first, step, state)
    assert box.finish(db, first, exit_code=1) is JobState.QUEUED
    second = box.start(db, job_id, gpus[:1])
    assert box.attempt_row(db, second).resumed_from_step == 200
    assert box.finish(db, second, exit_code=1) is JobState.FAILED
    job = box.job_row(db, job_id)
    assert (job.retries_used, job.error["cause"], job.error["exit_code"]) == (1, "exit", 1)
    assert "requeued" in kinds(db, job_id)


def test_a_committed_checkpoint_serves_only_its_own_node(db: Database, gpus: list[str]) -> None:
    others = box.add_node(db, "other")
    job_id = box.add_job(db, max_retries=2)
    first = box.start(db, job_id, gpus[:1])
    add_checkpoint(db, job_id, first, 100, "committed")
    box.finish(db, first, exit_code=1)
    elsewhere = box.start(db, job_id, others[:1], node="other")
    assert box.attempt_row(db, elsewhere).resumed_from_step is None
    box.finish(db, elsewhere, exit_code=1)
    back = box.start(db, job_id, gpus[:1])
    assert box.attempt_row(db, back).resumed_from_step == 100


def test_a_committed_checkpoint_that_its_node_has_forgotten_serves_nobody(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db, max_retries=1)
    first = box.start(db, job_id, gpus[:1])
    add_checkpoint(db, job_id, first, 100, "committed")
    with db.write() as tx:
        lifecycle.declare_dead(tx, first, "its node looked for its processes and found none", NOW)
    assert box.attempt_row(db, box.start(db, job_id, gpus[:1])).resumed_from_step is None


def test_a_first_start_asks_for_no_checkpoint(db: Database, gpus: list[str]) -> None:
    job = box.add_job(db)
    with statements.asked(db) as told:
        attempt = box.assign(db, job, gpus[:1])
    assert not [each for each in told if "FROM checkpoints" in each]
    with db.write() as tx:
        lifecycle.void(tx, attempt, "unclaimed", NOW)
    with statements.asked(db) as told:
        box.assign(db, job, gpus[:1])
    assert [each for each in told if "FROM checkpoints" in each]


def test_a_rerun_starts_from_the_checkpoint_it_names_until_it_has_its_own(db: Database, gpus: list[str]) -> None:
    first = box.add_job(db)
    attempt_id = box.start(db, first, gpus[:1])
    add_checkpoint(db, first, attempt_id, 100, "stored")
    box.finish(db, attempt_id)
    with db.read() as tx:
        named = tx.scalar(select(Checkpoint.id))
    rerun = box.add_job(db, max_retries=1)
    with db.write() as tx:
        tx.execute(update(Job).where(Job.id == rerun).values(restore_checkpoint=named))
    attempt_id = box.start(db, rerun, gpus[:1])
    assert box.attempt_row(db, attempt_id).restore_checkpoint == named
    add_checkpoint(db, rerun, attempt_id, 50, "stored")
    box.finish(db, attempt_id, exit_code=1)
    assert box.attempt_row(db, box.start(db, rerun, gpus[:1])).resumed_from_step == 50


def add_checkpoint(db: Database, job_id: str, attempt_id: str, step: int, state: str) -> None:
    with db.write() as tx:
        tx.execute(
            Checkpoint.__table__.insert().values(  # type: ignore[attr-defined]
                id=new_id("ckpt"),
                job_id=job_id,
                attempt_id=attempt_id,
                name=f"step-{step}",
                step=step,
                state=state,
                metrics={},
                size=1,
                created_us=NOW,
            )
        )


def test_cancel_of_a_waiting_job_is_immediate(db: Database, gpus: list[str]) -> None:
    waiting, assigned = box.add_job(db), box.add_job(db)
    attempt_id = box.assign(db, assigned, gpus[:1])
    with db.write() as tx:
        for job_id in (waiting, assigned):
            assert lifecycle.request_stop(tx, job_id, StopReason.CANCEL, "ada", NOW) is JobState.CANCELLED
    assert held(db) == set()
    assert box.attempt_row(db, attempt_id).state == "cancelled"
    assert box.job_row(db, waiting).stop == "cancel"


def test_a_stronger_reason_replaces_a_weaker_one(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    attempt_id = box.start(db, job_id, gpus[:1])
    for reason, expected in (
        (StopReason.DRAIN, "drain"),
        (StopReason.CANCEL, "cancel"),
        (StopReason.PREEMPT, "cancel"),
    ):
        with db.write() as tx:
            assert lifecycle.request_stop(tx, job_id, reason, "ada", NOW) is JobState.STOPPING
        assert box.job_row(db, job_id).stop == expected
    with db.read() as tx:
        (order,) = lifecycle.orders_for(tx, "box").orders
    assert (order.attempt, order.action, order.reason, order.grace_s) == (
        attempt_id,
        Action.STOP,
        StopReason.CANCEL,
        60,
    )
    result = {"exit_code": 0, "stopped_at_step": 7, "stop": StopReason.CANCEL}
    assert box.finish(db, attempt_id, **result) is JobState.CANCELLED
    with pytest.raises(lifecycle.Conflict, match="only a running job"), db.write() as tx:
        lifecycle.request_checkpoint(tx, job_id, "ada", NOW)


def test_cancel_of_a_job_that_is_over(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    box.finish(db, box.start(db, job_id, gpus[:1]))
    with pytest.raises(lifecycle.Conflict, match="it succeeded before"), db.write() as tx:
        lifecycle.request_stop(tx, job_id, StopReason.CANCEL, "ada", NOW)


def test_a_drained_job_waits_again_with_its_checkpoint(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    attempt_id = box.start(db, job_id, gpus[:1])
    with db.write() as tx:
        lifecycle.request_stop(tx, job_id, StopReason.DRAIN, "ada", NOW)
    add_checkpoint(db, job_id, attempt_id, 40, "committed")
    result = {"exit_code": 0, "stopped_at_step": 40, "stop": StopReason.DRAIN}
    assert box.finish(db, attempt_id, **result) is JobState.QUEUED
    job = box.job_row(db, job_id)
    assert (job.stop, job.retries_used) == (None, 0)
    assert job.restore_checkpoint is not None
    assert box.attempt_row(db, attempt_id).state == "preempted"


def test_orders_list_what_is_assigned_and_what_to_forget(db: Database, gpus: list[str]) -> None:
    done = box.start(db, box.add_job(db), gpus[:1])
    box.finish(db, done)
    running_job = box.add_job(db)
    running = box.start(db, running_job, gpus[:1])
    assigned = box.assign(db, box.add_job(db), gpus[1:])
    with db.write() as tx:
        lifecycle.settle(tx, done, "box")
        serial = lifecycle.request_checkpoint(tx, running_job, "ada", NOW)
        reports = [AttemptReport(attempt=a, phase=Phase.ENDED) for a in (done, running, "att-unknown")]
        orders = lifecycle.orders_for(tx, "box", reports)
    assert orders.assigned == [assigned]
    assert orders.forget == [done]
    assert [(o.attempt, o.action, o.serial) for o in orders.orders] == [(running, Action.CHECKPOINT, serial)]


def test_what_is_settled_wakes_the_scheduler_unless_its_job_is_over(db: Database, gpus: list[str]) -> None:
    """A job that waits again may wait for its checkpoints, and one that runs may be put back meanwhile."""
    over, again = (box.start(db, box.add_job(db, max_retries=1), [gpu]) for gpu in gpus[:2])
    box.finish(db, over)
    assert box.finish(db, again, exit_code=1) is JobState.QUEUED
    running = box.start(db, box.add_job(db), gpus[:1])
    for attempt, wakes in ((over, False), (again, True), (running, True)):
        with db.write() as tx:
            lifecycle.settle(tx, attempt, "box")
            assert unit_of(tx).scheduler is wakes


def test_silence_releases_nothing_and_return_takes_up_again(db: Database, gpus: list[str]) -> None:
    running, stopping, preparing = (box.add_job(db) for _ in range(3))
    box.add_node(db, "other")
    one, two = box.start(db, running, gpus[:1]), box.start(db, stopping, gpus[1:])
    three = box.assign(db, preparing, [])
    with db.write() as tx:
        lifecycle.claim(tx, three, "box", "n", NOW)
        lifecycle.request_stop(tx, stopping, StopReason.PREEMPT, None, NOW)
        assert set(lifecycle.set_unreachable(tx, "box", NOW)) == {running, stopping, preparing}
        assert lifecycle.set_unreachable(tx, "box", NOW) == []
        assert lifecycle.set_unreachable(tx, "other", NOW) == []
    assert held(db) == set(gpus)
    reports = [
        AttemptReport(attempt=one, phase=Phase.RUNNING),
        AttemptReport(attempt=two, phase=Phase.STOPPING),
        AttemptReport(attempt=three, phase=Phase.PREPARING),
    ]
    with db.write() as tx:
        lifecycle.set_reachable(tx, "box", reports, NOW)
    states = [box.job_row(db, job_id).state for job_id in (running, stopping, preparing)]
    assert states == ["running", "stopping", "starting"]


def test_what_is_cancelled_while_silent_stops_on_return(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    attempt_id = box.start(db, job_id, gpus[:1])
    with db.write() as tx:
        lifecycle.set_unreachable(tx, "box", NOW)
        state = lifecycle.request_stop(tx, job_id, StopReason.CANCEL, "ada", NOW)
        assert state is JobState.UNREACHABLE
        lifecycle.set_reachable(tx, "box", [AttemptReport(attempt=attempt_id, phase=Phase.RUNNING)], NOW)
        assert lifecycle.orders_for(tx, "box").orders[0].action is Action.STOP
    assert box.job_row(db, job_id).state == JobState.STOPPING


def test_a_late_result_ends_an_unreachable_job(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    attempt_id = box.start(db, job_id, gpus[:1])
    with db.write() as tx:
        lifecycle.set_unreachable(tx, "box", NOW)
    assert box.finish(db, attempt_id) is JobState.SUCCEEDED
    assert held(db) == set()


def test_the_dead_are_retried_and_killed_if_they_live(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    attempt_id = box.start(db, job_id, gpus[:1])
    with db.write() as tx:
        lifecycle.set_unreachable(tx, "box", NOW)
        assert lifecycle.declare_dead(tx, attempt_id, "the node was rebooted", NOW) is JobState.QUEUED
        orders = lifecycle.orders_for(tx, "box", [AttemptReport(attempt=attempt_id, phase=Phase.RUNNING)])
    assert held(db) == set()
    assert box.job_row(db, job_id).retries_used == 0
    assert [(order.attempt, order.action) for order in orders.orders] == [(attempt_id, Action.KILL)]
    assert box.finish(db, attempt_id) is JobState.QUEUED  # its late result no longer counts


def test_a_launcher_that_dies_before_the_start_costs_no_retry_but_not_for_ever(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    states = []
    for _ in range(4):
        attempt_id = box.assign(db, job_id, gpus[:1])
        with db.write() as tx:
            lifecycle.claim(tx, attempt_id, "box", "nonce", NOW)
        states.append(box.finish(db, attempt_id, kind=ResultKind.LOST, started_us=None))
    assert states == [JobState.QUEUED] * 3 + [JobState.FAILED]
    assert box.job_row(db, job_id).error["cause"] == "lost"


def test_the_time_limit_shows_as_the_stop(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db, time_limit=60)
    attempt_id = box.start(db, job_id, gpus[:1])
    assert box.finish(db, attempt_id, signal=15, stop=StopReason.TIMEOUT) is JobState.FAILED
    job = box.job_row(db, job_id)
    assert (job.stop, job.error["cause"]) == ("timeout", "time-limit")


def test_a_row_that_changed_meanwhile_is_not_overwritten(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    stale = box.job_row(db, job_id)
    with db.write() as tx:
        tx.execute(update(Job).where(Job.id == job_id).values(version=Job.version + 1))
    note = lifecycle.Note(kind="cancelled", message="cancelled")
    with pytest.raises(lifecycle.Conflict, match="meanwhile"), db.write() as tx:
        lifecycle.move_job(tx, stale, JobState.CANCELLED, note, NOW)
    with pytest.raises(lifecycle.Conflict, match="version"), db.write() as tx:
        lifecycle.change_job(tx, job_id, note, NOW, version=1, priority=3)


def test_moves_outside_the_table_are_refused(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    note = lifecycle.Note(kind="running", message="running")
    with pytest.raises(lifecycle.Conflict, match="cannot become running"), db.write() as tx:
        lifecycle.move_job(tx, box.job_row(db, job_id), JobState.RUNNING, note, NOW)


def test_unknown_ids_are_told_apart(db: Database) -> None:
    with pytest.raises(lifecycle.Unknown), db.write() as tx:
        lifecycle.void(tx, "att-none", "", NOW)
    with pytest.raises(lifecycle.Unknown), db.write() as tx:
        lifecycle.insert_event(tx, "job-none", "changed", "changed")


def test_a_port_that_the_launcher_lost_starts_the_job_once_more(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    states = []
    for _ in range(2):
        attempt_id = box.start(db, job_id, gpus[:1])
        states.append(box.finish(db, attempt_id, exit_code=1, fingerprint="address-in-use"))
    assert states == [JobState.QUEUED, JobState.FAILED]
    assert box.job_row(db, job_id).retries_used == 0


HUNG = "stopped because it makes no step any more: rank 1 waits in all_reduce"


@pytest.mark.parametrize("written", ["now", "before details were stored"])
def test_why_a_run_was_stopped_is_data_and_not_the_events_words(db: Database, gpus: list[str], written: str) -> None:
    job_id = box.add_job(db)
    attempt_id = box.start(db, job_id, gpus[:1])
    with db.write() as tx:
        lifecycle.request_stop(tx, job_id, StopReason.HUNG, None, NOW, HUNG)
        asked = (Event.job_id == job_id, Event.kind == "stop-requested")
        if written == "now":
            tx.execute(update(Event).where(*asked).values(message="asked to stop"))
        else:
            tx.execute(update(Event).where(*asked).values(data={"reason": "hung"}))
    box.finish(db, attempt_id, signal=9, stop=StopReason.HUNG)
    assert box.job_row(db, job_id).error["message"] == f"{HUNG}; `yard stacks` shows all of it"
