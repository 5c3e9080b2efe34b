"""Devices that one attempt has alone, and devices that several share."""

import threading

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from service import lifecycle
from service.db.engine import Database
from service.db.models import Allocation, Device, DeviceUse
from tests.support import box
from tests.support.box import GIB, NOW
from torchyard.states import JobState


@pytest.fixture
def uuid(db: Database) -> str:
    """The only GPU, of 80 GiB."""
    box.add_people(db)
    return box.add_node(db, devices=1)[0]


def sharing(db: Database, size: str) -> str:
    return box.add_job(db, resources={"gpu_share": size})


def used(db: Database) -> int:
    with db.read() as tx:
        return tx.scalar(select(DeviceUse.used)) or 0


def test_several_share_a_gpu_until_its_memory_is_gone(db: Database, uuid: str) -> None:
    attempts = [box.assign(db, sharing(db, "30GiB"), [uuid]) for _ in range(2)]
    assert used(db) == 60 * GIB
    with pytest.raises(lifecycle.Conflict, match="too little of it is left"):
        box.assign(db, sharing(db, "30GiB"), [uuid])
    box.assign(db, sharing(db, "20GiB"), [uuid])
    for attempt in attempts:
        box.finish(db, attempt)
    assert used(db) == 20 * GIB


def test_whoever_has_it_alone_shares_it_with_nobody(db: Database, uuid: str) -> None:
    alone = box.assign(db, box.add_job(db), [uuid])
    assert used(db) == 80 * GIB
    with pytest.raises(lifecycle.Conflict):
        box.assign(db, sharing(db, "1GiB"), [uuid])
    box.finish(db, alone)
    shared = box.assign(db, sharing(db, "1GiB"), [uuid])
    with pytest.raises(lifecycle.Conflict):
        box.assign(db, box.add_job(db), [uuid])
    box.finish(db, shared)
    assert used(db) == 0


def test_a_result_that_comes_again_frees_nothing_twice(db: Database, uuid: str) -> None:
    first, _ = (box.assign(db, sharing(db, "30GiB"), [uuid]) for _ in range(2))
    for _ in range(2):
        box.finish(db, first)
    assert used(db) == 30 * GIB


def test_the_database_itself_gives_out_no_more_than_there_is(db: Database, uuid: str) -> None:
    box.assign(db, sharing(db, "30GiB"), [uuid])
    for used_now in (81 * GIB, -1):
        with pytest.raises(IntegrityError), db.write() as tx:
            tx.execute(update(DeviceUse).values(used=used_now))
    box.assign(db, sharing(db, "30GiB"), [uuid])
    with pytest.raises(IntegrityError), db.write() as tx:
        tx.execute(update(Allocation).values(share=None))


def test_a_card_that_was_exchanged_counts_with_what_it_has(db: Database, uuid: str) -> None:
    box.finish(db, box.assign(db, box.add_job(db), [uuid]))
    with db.write() as tx:
        tx.execute(update(Device).values(memory=40 * GIB))
    with pytest.raises(lifecycle.Conflict):
        box.assign(db, sharing(db, "50GiB"), [uuid])
    box.assign(db, sharing(db, "40GiB"), [uuid])


def test_rivals_for_the_last_memory(db: Database, uuid: str) -> None:
    jobs = [sharing(db, "30GiB") for _ in range(6)]
    barrier = threading.Barrier(len(jobs))

    def take(job: str) -> None:
        barrier.wait()
        try:
            box.assign(db, job, [uuid])
        except lifecycle.Conflict:
            return

    threads = [threading.Thread(target=take, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    states = [box.job_row(db, job).state for job in jobs]
    assert states.count(JobState.ASSIGNED) == 2
    assert used(db) == 60 * GIB


def test_age_counts_from_the_release_and_not_from_a_retry(db: Database, uuid: str) -> None:
    job = box.add_job(db, max_retries=1)
    with db.write() as tx:
        lifecycle.hold(tx, job, "ada", NOW + 10)
        lifecycle.release_hold(tx, job, "ada", NOW + 20)
    assert box.job_row(db, job).eligible_us == NOW + 20
    attempt = box.start(db, job, [uuid])
    box.finish(db, attempt, exit_code=1, started_us=NOW + 2, ended_us=NOW + 50)
    row = box.job_row(db, job)
    assert (row.state, row.eligible_us, row.ran_us, row.preemptions) == (JobState.QUEUED, NOW + 20, 48, 0)
