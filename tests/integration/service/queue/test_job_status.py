"""What is told of jobs that run."""

from typing import Any

import pytest
from sqlalchemy import insert, select, update

from service.db.engine import Database
from service.db.models import Attempt, Job, Member, MetricSeries
from service.db.records.jobs import JobRecord
from service.queue import job_status
from service.scheduler.model.state import SchedulerState
from tests.support import box

S = 1_000_000


@pytest.mark.parametrize(
    ("stream", "spec", "told"),
    [
        (None, {}, [False, True]),
        ("printed-rank-0", {}, [False, True]),
        ("rank-0", {}, [False, False]),
        (None, {"hang": {"after": 400}}, [False, False]),
    ],
)
def test_a_run_without_reported_steps_is_not_watched(
    db: Database, stream: str | None, spec: dict[str, Any], told: list[bool]
) -> None:
    box.add_people(db)
    box.add_node(db, devices=1)
    job_id = box.add_job(db, **spec)
    attempt_id = box.start(db, job_id, ["box-gpu-0"])
    with db.write() as tx:
        if stream is not None:
            of_run = {"job_id": job_id, "attempt_id": attempt_id, "attempt": 1, "number": 1, "rank": 0}
            tx.execute(insert(MetricSeries).values(id=1, stream=stream, name="loss", last_time_us=1, **of_run))
        job = JobRecord.one(tx.execute(select(Job.__table__).where(Job.id == job_id)))
        found = [job_status.unwatched(tx, job, box.NOW + after * S) for after in (200, 350)]
    assert [bool(each) for each in found] == told
    assert all("torchyard.report(" in reason.message for each in found for reason in each)


def test_a_job_that_waits_for_files_of_an_earlier_attempt_says_so(db: Database) -> None:
    box.add_people(db)
    box.add_node(db, devices=2)
    first, second = box.add_job(db), box.add_job(db)
    earlier = box.start(db, first, ["box-gpu-0"])
    later = box.start(db, second, ["box-gpu-1"])

    def told(**changes: Any) -> list[str]:
        with db.write() as tx:
            tx.execute(update(Job).where(Job.id == second).values(state="starting"))
            tx.execute(update(Attempt).where(Attempt.id == later).values(carried_from=earlier))
            tx.execute(update(Member).where(Member.attempt_id == earlier).values(**changes))
            job = JobRecord.one(tx.execute(select(Job.__table__).where(Job.id == second)))
            reasons = job_status.why(tx, job, None, SchedulerState(), box.NOW).reasons
        return [reason.message for reason in reasons if reason.code == "files-arriving"]

    assert told(settled=False) == [
        "waits for files of attempt 1 of job 1 from node box, no longer than 1h after its end"
    ]
    assert told(settled=True) == []
