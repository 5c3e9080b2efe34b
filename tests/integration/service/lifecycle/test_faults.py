"""What is not the job's fault: how often it is tried again, and when a device goes out of use."""

from typing import Any

import pytest
from sqlalchemy import insert, select, update

from service import lifecycle
from service.db.engine import Database
from service.db.models import Attempt, Checkpoint, Device, Job, Member
from service.db.records.nodes import DeviceRecord
from service.estimation.forecasts import Estimator
from service.nodes import heartbeats, outages, registration
from service.scheduler.model.jobs import IneligibleReason
from service.scheduler_cache.load import Loader
from tests.support import box
from tests.support.box import NOW
from torchyard import wire
from torchyard.ids import new_id
from torchyard.states import JobState, StopReason

FAULT = {"exit_code": 1, "failed_rank": 0, "fingerprint": "gpu-fault"}
LOST = FAULT | {"fingerprint": "nccl-timeout"}


@pytest.fixture
def gpus(db: Database) -> list[str]:
    box.add_people(db)
    return box.add_node(db)


def fail(
    db: Database, job_id: str, uuids: list[str], *, begun: int | None = None, step: int | None = None, **values: Any
) -> JobState:
    """One more attempt of the job from a step on, with a checkpoint if a step is given, and its end."""
    attempt_id = box.start(db, job_id, uuids)
    with db.write() as tx:
        tx.execute(update(Attempt).where(Attempt.id == attempt_id).values(resumed_from_step=begun))
    if step is not None:
        with db.write() as tx:
            tx.execute(
                insert(Checkpoint).values(
                    id=new_id("ckpt"),
                    job_id=job_id,
                    attempt_id=attempt_id,
                    name=f"step-{step}",
                    step=step,
                    state="stored",
                    metrics={},
                    size=1,
                    created_us=NOW,
                )
            )
    return box.finish(db, attempt_id, **(values or FAULT))


def unusable(db: Database, uuid: str) -> str | None:
    with db.read() as tx:
        return tx.scalar(select(Device.unusable).where(Device.uuid == uuid))


def test_a_job_without_progress_is_not_tried_for_ever(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    states = [fail(db, job_id, gpus[:1], **LOST) for _ in range(4)]
    assert states == [JobState.QUEUED] * 3 + [JobState.FAILED]
    assert box.job_row(db, job_id).retries_used == 0
    assert unusable(db, gpus[0]) is None


def test_a_job_rests_before_it_is_tried_again(db: Database, gpus: list[str]) -> None:
    job_id, pauses = box.add_job(db), []
    loader = Loader(0, Estimator())
    for _ in range(3):
        fail(db, job_id, gpus[:1], **LOST)
        with db.write() as tx:
            tx.execute(update(Member).values(settled=True))
        ended = NOW + 4
        pauses.append(seconds := ((box.job_row(db, job_id).retry_us or ended) - ended) // 1_000_000)
        for now, ineligible in (
            (ended, IneligibleReason.RESTING if seconds else None),
            (ended + seconds * 1_000_000, None),
            (ended - 3600 * 1_000_000, None),  # the clock was set back
        ):
            with loader.snapshot(db, now) as (_, state):
                assert state.waiting[job_id].ineligible is ineligible
    assert pauses == [0, 30, 120]


def test_a_job_that_writes_checkpoints_goes_on_through_any_number_of_faults(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db)
    for step in range(1, 7):
        assert fail(db, job_id, gpus[:1], step=step, **LOST) is JobState.QUEUED
    assert [fail(db, job_id, gpus[:1], **LOST) for _ in range(4)] == [JobState.QUEUED] * 3 + [JobState.FAILED]


def test_an_idle_job_that_saves_only_where_it_began_is_not_put_back_for_ever(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db, idle_limit=60, idle_action="requeue")
    idle = {"signal": 15, "stop": StopReason.IDLE}

    def stop(begun: int | None, step: int) -> JobState:
        with db.write() as tx:
            tx.execute(update(Job).where(Job.id == job_id).values(stop=None))
        return fail(db, job_id, gpus[:1], begun=begun, step=step, stopped_at_step=step, **idle)

    further = [stop(begun, begun + 10) for begun in range(0, 50, 10)]
    assert further == [JobState.QUEUED] * 5
    stuck = [stop(50, 50) for _ in range(4)]
    assert stuck == [JobState.QUEUED] * 3 + [JobState.FAILED]
    assert box.job_row(db, job_id).retries_used == 0


def test_faults_count_again_after_a_failure_of_its_own(db: Database, gpus: list[str]) -> None:
    job_id = box.add_job(db, max_retries=1)
    assert [fail(db, job_id, gpus[:1], **LOST) for _ in range(3)] == [JobState.QUEUED] * 3
    assert fail(db, job_id, gpus[:1], exit_code=1) is JobState.QUEUED
    assert box.job_row(db, job_id).retries_used == 1
    assert [fail(db, job_id, gpus[:1], **LOST) for _ in range(4)] == [JobState.QUEUED] * 3 + [JobState.FAILED]


def test_a_gpu_under_which_three_jobs_in_a_row_failed_goes_out_of_use_until_it_is_resumed(
    db: Database, gpus: list[str]
) -> None:
    for _ in range(2):
        fail(db, box.add_job(db), gpus[:1])
    fail(db, box.add_job(db), gpus[:1], exit_code=0)
    for expected in (None, None):
        fail(db, box.add_job(db), gpus[:1])
        assert unusable(db, gpus[0]) is expected
    fail(db, box.add_job(db), gpus[:1])
    why = unusable(db, gpus[0]) or ""
    assert why.startswith("failed under the last 3 jobs")
    assert "`yard nodes --resume box`" in why
    with db.read() as tx:
        found = DeviceRecord.one(tx.execute(select(Device.__table__).where(Device.uuid == gpus[0]))).finding
        (outage,) = outages.since(tx, 0)["box", gpus[0]]
    assert found is not None
    assert found == outage.finding
    assert (found.code, found.message, found.params) == (
        "failing",
        why,
        {"jobs": 3, "resume": "yard nodes --resume box"},
    )
    _beat(db, gpus)
    assert unusable(db, gpus[0]) == why
    with db.write() as tx:
        registration.set_draining(tx, "box", False)
    assert unusable(db, gpus[0]) is None


def test_the_gpu_of_the_rank_that_failed_is_the_suspect(db: Database, gpus: list[str]) -> None:
    for _ in range(3):
        fail(db, box.add_job(db, gpus=2, launcher="torchrun"), gpus, **(FAULT | {"failed_rank": 1}))
    assert unusable(db, gpus[0]) is None
    assert unusable(db, gpus[1]) is not None


def _beat(db: Database, uuids: list[str]) -> None:
    """A heartbeat of the node, which itself finds nothing wrong."""
    devices = [
        wire.Device(uuid=uuid, index=index, kind=wire.DeviceKind.GPU, name="A100", memory=80 * box.GIB)
        for index, uuid in enumerate(uuids)
    ]
    identity = wire.Identity(node_id="machine-box", home_id="home-box", boot_id="boot-1", pid_namespace="pid-1")
    with db.write() as tx:
        heartbeats.record(tx, "box", wire.Heartbeat(identity=identity, devices=devices, attempts=[], disk_free=1), NOW)
        assert lifecycle.orders_for(tx, "box").orders == []
