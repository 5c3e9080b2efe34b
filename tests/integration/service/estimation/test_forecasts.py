"""Forecasts are written at the first start, judged at the end, and learnt from."""

from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from service.db.engine import Database
from service.db.models import Forecast, Job, MetricPoint, MetricSeries
from service.db.records.jobs import JobRecord
from service.estimation import forecasts
from service.estimation.forecasts import Estimator
from service.scheduler.model.jobs import Estimate, EstimateSource
from tests.support import box
from tests.support.box import NOW

SECOND = 1_000_000
MINUTE = 60 * SECOND


def began(db: Database, estimator: Estimator, **spec: Any) -> tuple[str, str]:
    """A job that runs on the first GPU; its id and its attempt's."""
    job_id = box.add_job(db, **spec)
    attempt_id = box.start(db, job_id, ["box-gpu-0"])
    with db.write() as tx:
        estimator.begin(tx, job_id, NOW + 2)
    return job_id, attempt_id


def succeeded(db: Database, estimator: Estimator, job: tuple[str, str], took_us: int) -> None:
    box.finish(db, job[1], ended_us=NOW + 2 + took_us)
    with db.write() as tx:
        estimator.done(tx, job[0], NOW + 2 + took_us)


def rows(db: Database, job_id: str) -> list[Any]:
    with db.read() as tx:
        query = select(Forecast.__table__).where(Forecast.job_id == job_id).order_by(Forecast.source)
        return list(tx.execute(query))


def remaining(db: Database, estimator: Estimator, job_id: str, now: int) -> Estimate | None:
    with db.read() as tx:
        jobs = JobRecord.all(tx.execute(select(Job.__table__).where(Job.id == job_id)))
        return estimator.remaining(tx, jobs, now).get(job_id)


def report_steps(
    db: Database, job_id: str, attempt_id: str, seconds: int, total: int, stream: str = "rank-0", name: str = "loss"
) -> None:
    """A step each second, from ten seconds after the start."""
    started = NOW + 2 + 10 * SECOND
    with db.write() as tx:
        number = (tx.scalar(select(func.max(MetricSeries.id))) or 0) + 1
        tx.execute(
            insert(MetricSeries).values(
                id=number,
                job_id=job_id,
                attempt_id=attempt_id,
                attempt=1,
                stream=stream,
                rank=0,
                name=name,
                last_step=seconds,
                last_time_us=started + seconds * SECOND,
                last_value=1.0,
            )
        )
        points = [
            {"series_id": number, "seq": step, "step": step, "time_us": started + step * SECOND, "value": 1.0}
            for step in range(seconds + 1)
        ]
        tx.execute(insert(MetricPoint), points)
        tx.execute(update(Job).where(Job.id == job_id).values(step=seconds, total_steps=total))


def test_jobs_tell_of_their_like(db: Database) -> None:
    box.add_people(db)
    box.add_node(db)
    estimator = Estimator()
    first = began(db, estimator)
    (row,) = rows(db, first[0])
    assert (row.source, row.p50_us, row.actual_us) == ("none", None, None)
    assert remaining(db, estimator, first[0], NOW + 3) is None
    succeeded(db, estimator, first, 8 * MINUTE)
    (row,) = rows(db, first[0])
    assert (row.actual_us, row.ended_us) == (8 * MINUTE, NOW + 2 + 8 * MINUTE)
    waiting = box.add_job(db)
    expected = Estimate(p10_us=2 * MINUTE, p50_us=8 * MINUTE, p90_us=32 * MINUTE, source=EstimateSource.HISTORY)
    assert remaining(db, estimator, waiting, NOW + 10 * MINUTE) == expected
    assert remaining(db, Estimator(), waiting, NOW + 10 * MINUTE) == expected, "another process knows it too"
    second = began(db, estimator)
    succeeded(db, estimator, second, 16 * MINUTE)
    with db.read() as tx:
        (accuracy,) = estimator.accuracy(tx, NOW)
    assert (accuracy.basis, accuracy.count, accuracy.shares, accuracy.error) == ("history", 1, (0, 0, 1), 0.5)


def test_limits_tell_where_nothing_else_does(db: Database) -> None:
    box.add_people(db)
    box.add_node(db)
    job_id, _ = began(db, estimator := Estimator(), time_limit=600)
    assert [(row.source, row.p90_us) for row in rows(db, job_id)] == [("limit", 10 * MINUTE)]
    found = remaining(db, estimator, job_id, NOW + 2 + 4 * MINUTE)
    assert found == Estimate(p10_us=36 * SECOND, p50_us=3 * MINUTE, p90_us=6 * MINUTE, source=EstimateSource.LIMIT)


def test_steps_tell_best_and_are_judged_after_a_minute(db: Database) -> None:
    box.add_people(db)
    box.add_node(db)
    estimator = Estimator()
    job = began(db, estimator, time_limit=36000)
    report_steps(db, *job, seconds=100, total=500)
    found = remaining(db, estimator, job[0], NOW + 2 + 110 * SECOND)
    assert found is not None
    assert (found.source, found.p50_us) == (EstimateSource.PROGRESS, 400 * SECOND)
    succeeded(db, estimator, job, 510 * SECOND)
    limit, progress = rows(db, job[0])
    assert (limit.source, limit.actual_us) == ("limit", 510 * SECOND)
    assert (progress.source, progress.p50_us, progress.actual_us) == ("progress", 450 * SECOND, 450 * SECOND)


def test_printed_steps_tell_where_none_are_reported(db: Database) -> None:
    box.add_people(db)
    box.add_node(db)
    estimator = Estimator()
    job = began(db, estimator, time_limit=36000)
    report_steps(db, *job, seconds=20, total=20, stream="printed-rank-0.jsonl", name="progress")
    report_steps(db, *job, seconds=100, total=500, stream="printed-rank-0.jsonl", name="progress/phase-2")
    found = remaining(db, estimator, job[0], NOW + 2 + 110 * SECOND)
    assert found is not None
    assert (found.source, found.p50_us) == (EstimateSource.PROGRESS, 400 * SECOND), "by what is counted now"
    succeeded(db, estimator, job, 510 * SECOND)
    _, progress = rows(db, job[0])
    assert (progress.source, progress.p50_us, progress.actual_us) == ("progress-printed", 450 * SECOND, 450 * SECOND)
    with db.read() as tx:
        assert [each.basis for each in Estimator().accuracy(tx, NOW)] == ["limit", "progress-printed"]


def test_an_interrupted_job_is_told_by_its_last_attempt(db: Database) -> None:
    box.add_people(db)
    box.add_node(db)
    estimator = Estimator()
    job_id, attempt_id = began(db, estimator, max_retries=1)
    report_steps(db, job_id, attempt_id, seconds=100, total=500)
    box.finish(db, attempt_id, exit_code=1, ended_us=NOW + 2 + 120 * SECOND)
    found = remaining(db, estimator, job_id, NOW + 200 * SECOND)
    assert found is not None
    assert (found.source, found.p50_us) == (EstimateSource.PROGRESS, 510 * SECOND), (
        "from step 0, with ten seconds to start"
    )


def test_what_is_told_again_changes_nothing(db: Database) -> None:
    box.add_people(db)
    box.add_node(db)
    estimator = Estimator()
    job = began(db, estimator)
    with db.write() as tx:
        estimator.done(tx, job[0], NOW + 5)
        estimator.begin(tx, job[0], NOW + 5)
    assert [row.ended_us for row in rows(db, job[0])] == [None], "it still runs"
    for _ in range(2):
        succeeded(db, estimator, job, MINUTE)
    assert [row.actual_us for row in rows(db, job[0])] == [MINUTE]


def test_a_job_that_ends_before_it_was_heard_to_run(db: Database) -> None:
    box.add_people(db)
    box.add_node(db)
    job_id = box.add_job(db)
    attempt_id = box.assign(db, job_id, ["box-gpu-0"])
    succeeded(db, Estimator(), (job_id, attempt_id), SECOND)
    assert [(row.source, row.actual_us) for row in rows(db, job_id)] == [("none", SECOND)]


def test_only_what_is_new_is_read(db: Database) -> None:
    box.add_people(db)
    box.add_node(db)
    estimator, other = Estimator(), Estimator()
    succeeded(db, estimator, began(db, estimator), MINUTE)
    waiting = box.add_job(db)
    assert remaining(db, other, waiting, NOW + MINUTE) is not None
    for _ in range(20):
        succeeded(db, estimator, began(db, estimator), 4 * MINUTE)
    assert remaining(db, other, waiting, NOW + MINUTE) == remaining(db, other, waiting, NOW + MINUTE + 1)
    later = remaining(db, other, waiting, NOW + MINUTE + forecasts.REFRESH_US)
    again = remaining(db, other, waiting, NOW + MINUTE + 3 * forecasts.REFRESH_US)
    assert later == again
    assert later is not None
    assert later.p50_us == 4 * MINUTE


def test_after_the_clock_was_set_back_what_ends_is_learnt_once(db: Database) -> None:
    box.add_people(db)
    box.add_node(db)
    estimator = Estimator()
    for took_us in (120 * MINUTE, 121 * MINUTE, 10 * MINUTE, 12 * MINUTE, 14 * MINUTE):
        succeeded(db, estimator, began(db, estimator), took_us)
        with db.read() as tx:
            estimator.accuracy(tx, NOW + took_us + SECOND)
    waiting = box.add_job(db)
    for now in (NOW + 15 * MINUTE, NOW + 16 * MINUTE, NOW + 122 * MINUTE, NOW + 124 * MINUTE):
        found = remaining(db, estimator, waiting, now)
        assert found is not None
        assert found == remaining(db, Estimator(), waiting, now)
        with db.read() as tx:
            assert estimator.accuracy(tx, now) == Estimator().accuracy(tx, now)


def test_rows_that_cannot_be_read_are_left_out(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    box.add_people(db)
    box.add_node(db)
    estimator = Estimator()
    bad = {"key": "nobody"}, {"actual_us": None}, {"raw_p50_us": 1, "p50_us": 1}
    for broken in bad:
        job = began(db, estimator)
        succeeded(db, estimator, job, 30 * MINUTE)
        with db.write() as tx:
            tx.execute(update(Forecast).where(Forecast.job_id == job[0]).values(**broken))
    succeeded(db, estimator, began(db, estimator), 8 * MINUTE)
    waiting = box.add_job(db)
    caplog.clear()
    other = Estimator()
    for now in (NOW + 20 * MINUTE, NOW + 40 * MINUTE):  # at first they seem to end in the future
        remaining(db, other, waiting, now)
        found = remaining(db, other, waiting, now + forecasts.REFRESH_US)
        assert found is not None
        assert found.p50_us == 8 * MINUTE
    (told,) = [each.getMessage() for each in caplog.records if each.name == "service.estimation.forecasts"]
    assert told.startswith("3 stored forecasts cannot be read and are left out, the first: job ")
