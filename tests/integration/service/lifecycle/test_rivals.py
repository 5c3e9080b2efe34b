"""Writers that meet: one wins, the other is told."""

import threading
from collections.abc import Callable

from sqlalchemy import func, insert, select, update

from service import lifecycle
from service.db.engine import Database
from service.db.models import Allocation, Dependency, Event, Job
from tests.support import box
from tests.support.box import NOW
from tests.support.statements import asked, first
from torchyard.states import JobState, StopReason
from torchyard.wire import Result, ResultKind


def meet(*actions: Callable[[], object]) -> list[object]:
    """Runs the actions at the same moment; returns what each gave, or its Conflict."""
    barrier = threading.Barrier(len(actions))
    given: list[object] = [None] * len(actions)

    def act(place: int) -> None:
        barrier.wait()
        try:
            given[place] = actions[place]()
        except lifecycle.Conflict as conflict:
            given[place] = conflict

    threads = [threading.Thread(target=act, args=(place,)) for place in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return given


def test_two_schedulers_give_a_gpu_once(db: Database) -> None:
    box.add_people(db)
    uuids = box.add_node(db, devices=2)
    for _ in range(10):
        jobs = [box.add_job(db, gpus=2) for _ in range(4)]
        given = meet(
            *(
                lambda job=job, mine=mine: box.assign(db, job, mine)
                for job, mine in zip(jobs, (uuids, uuids[::-1], uuids, uuids[:1]), strict=True)
            )
        )
        won = [attempt for attempt in given if isinstance(attempt, str)]
        assert len(won) == 1, given
        with db.read() as tx:
            held = tx.scalar(select(func.count()).select_from(Allocation).where(Allocation.live))
        assert held in (1, 2)
        with db.write() as tx:
            lifecycle.void(tx, won[0], "next round", NOW)


def test_a_claim_meets_a_cancel(db: Database) -> None:
    box.add_people(db)
    uuids = box.add_node(db, devices=1)
    for _ in range(15):
        job_id = box.add_job(db)
        attempt_id = box.assign(db, job_id, uuids)

        def claim(attempt_id: str = attempt_id) -> object:
            with db.write() as tx:
                return lifecycle.claim(tx, attempt_id, "box", "nonce", NOW)

        def cancel(job_id: str = job_id) -> object:
            with db.write() as tx:
                return lifecycle.request_stop(tx, job_id, StopReason.CANCEL, "ada", NOW)

        claimed, cancelled = meet(claim, cancel)
        if isinstance(claimed, lifecycle.Conflict):
            assert cancelled is JobState.CANCELLED
        else:
            assert cancelled is JobState.STOPPING
            box.finish(db, attempt_id, signal=15, stop=StopReason.CANCEL)
        assert box.job_row(db, job_id).state == JobState.CANCELLED


def test_results_that_meet_are_counted_once(db: Database) -> None:
    box.add_people(db)
    uuids = box.add_node(db, devices=1)
    job_id = box.add_job(db, max_retries=5)
    attempt_id = box.start(db, job_id, uuids)
    result = Result(kind=ResultKind.EXITED, exit_code=1, started_us=NOW, ended_us=NOW)

    def finish() -> object:
        with db.write() as tx:
            return lifecycle.finish(tx, attempt_id, result, NOW)

    assert meet(*[finish] * 5) == [JobState.QUEUED] * 5
    assert box.job_row(db, job_id).retries_used == 1


def test_events_that_meet_keep_their_numbers(db: Database) -> None:
    box.add_people(db)
    job_id = box.add_job(db)

    def tell() -> object:
        with db.write() as tx:
            return lifecycle.insert_event(tx, job_id, "checkpoint", "stored", now=NOW)

    assert sorted(meet(*[tell] * 8)) == list(range(2, 10))  # type: ignore[type-var]
    with db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(Event)) == 9


def test_an_end_locks_all_jobs_before_accounts_as_a_submission_does(db: Database) -> None:
    box.add_people(db)
    needed = box.add_job(db)
    last = box.add_job(db, after=[1])
    with db.write() as tx:
        tx.execute(update(Job).where(Job.id == last).values(blocked=True))
        tx.execute(insert(Dependency).values(job_id=last, needs=needed))
    attempt_id = box.start(db, needed, box.add_node(db, devices=1))
    with asked(db) as told:
        box.finish(db, attempt_id)
    assert not box.job_row(db, last).blocked
    assert first(told, "UPDATE jobs", last) < first(told, "INSERT INTO accounts")
