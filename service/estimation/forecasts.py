"""Estimates over the database: what is known of jobs, and what forecasts turned out to be worth.

Any number of jobs takes a fixed number of queries; histories are kept in memory and only what is new is read.
"""

import logging
import threading
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, exists, insert, select, update

from service.db import upsert
from service.db.changefeed import Overlap
from service.db.models import Attempt, Forecast, Job
from service.estimation import estimates, subjects
from service.estimation.calibration import Calibration, Outcome, Worth
from service.estimation.estimates import History, Kin, Progress, Quantiles, Subject
from service.estimation.subjects import Watches
from service.scheduler.model.jobs import Estimate
from torchyard.states import JobState

logger = logging.getLogger(__name__)

#: Ended forecasts that are read at the start.
REMEMBERED = 20_000
#: What has ended is looked for this often.
REFRESH_US = 5 * 1_000_000
#: Transactions may become visible this much later than they say.
OVERLAP_US = 60 * 1_000_000
#: When a job's own steps are first asked, to learn what they are worth.
JUDGED_US = 60 * 1_000_000


class Estimator:
    """Knows how long jobs take; safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._history = History()
        self._calibration = Calibration()
        self._newest_us: int | None = None
        self._overlap = Overlap(OVERLAP_US, REFRESH_US)
        self._seen: dict[tuple[str, str], int] = {}
        self._next_us = 0
        self._watches = Watches()

    def remaining(self, tx: Connection, jobs: Sequence[Row[Any]], now: int) -> dict[str, Estimate]:
        """What is left of these jobs, given as rows; those of which nothing is known are absent."""
        with self._lock:
            self._refresh(tx, now)
            asked = self._watches.subjects(tx, jobs, now)
            raws = {job: estimates.raw(subject, self._history) for job, subject in asked.items()}
            return {job: self._calibration.estimate(raw, asked[job]) for job, raw in raws.items() if raw}

    def of_kin(self, tx: Connection, kin: Kin, limit_us: int | None, now: int) -> Estimate | None:
        """How long a job of this kind would take that does not exist."""
        subject = Subject(kin=kin, limit_us=limit_us)
        with self._lock:
            self._refresh(tx, now)
            raw = estimates.raw(subject, self._history)
            return self._calibration.estimate(raw, subject) if raw else None

    def worth(self, tx: Connection, now: int) -> list[Worth]:
        """How the forecasts of each basis came out."""
        with self._lock:
            self._next_us = 0
            self._refresh(tx, now)
            return self._calibration.report()

    def begin(self, tx: Connection, job_id: str, now: int) -> None:
        """Writes down what is expected of a job that runs for the first time; again, or later, it changes nothing."""
        job = tx.execute(select(Job.__table__).where(Job.id == job_id)).one()
        if job.attempt != 1 or _goes_on(tx, job_id):
            return
        subject = Subject(kin=subjects.kin(job), limit_us=subjects.limit_us(job))
        with self._lock:
            self._refresh(tx, now)
            raw = estimates.raw(subject, self._history)
            values = self._values(raw, subject) if raw else {"source": "none"}
        values |= {"job_id": job_id, "key": str(subject.kin), "made_us": now}
        tx.execute(upsert.insert(tx, Forecast).values(**values).on_conflict_do_nothing())

    def done(self, tx: Connection, job_id: str, now: int) -> None:
        """Writes down how long a job took, if it has just succeeded and ran from its beginning."""
        job = tx.execute(select(Job.__table__).where(Job.id == job_id)).one()
        ended = exists().where(Forecast.job_id == job_id, Forecast.ended_us.is_not(None))
        if job.state != JobState.SUCCEEDED or tx.scalar(select(ended)) or _goes_on(tx, job_id):
            return
        attempts = subjects.attempts(tx, [job_id])
        took = {"actual_us": subjects.ran_us(attempts, now), "ended_us": now}
        known = tx.execute(update(Forecast).where(Forecast.job_id == job_id).values(**took)).rowcount
        if not known:  # it was over before anybody heard that it ran
            none = {"job_id": job_id, "key": str(subjects.kin(job)), "source": "none", "made_us": now}
            tx.execute(insert(Forecast).values(**none, **took))
        if len(attempts) == 1 and job.total_steps:
            self._judge_progress(tx, job, attempts[0], now)
        self._next_us = 0

    def _judge_progress(self, tx: Connection, job: Row[Any], attempt: Row[Any], now: int) -> None:
        """What the job's own steps told after a minute, against what was then still to come."""
        watch = subjects.watch_at(tx, attempt, attempt.started_us + JUDGED_US)
        if watch is None:
            return
        (step0, time0), (step, time_us) = watch
        progress = Progress(steps_left=job.total_steps - step, watched_steps=step - step0, watched_us=time_us - time0)
        raw = estimates.from_progress(progress)
        if raw is None:
            return
        subject = Subject(
            kin=subjects.kin(job), limit_us=subjects.limit_us(job), attempt_us=time_us - attempt.started_us
        )
        took = {"actual_us": max(0, attempt.ended_us - time_us), "ended_us": now}
        with self._lock:
            values = self._values(raw, subject)
        tx.execute(
            insert(Forecast).values(job_id=job.id, key=str(subject.kin), made_us=time_us, **values, **took),
        )

    def _values(self, raw: estimates.Raw, subject: Subject) -> dict[str, Any]:
        published, before = self._calibration.estimate(raw, subject), raw.quantiles
        return {
            "source": raw.basis,
            "p10_us": published.p10_us,
            "p50_us": published.p50_us,
            "p90_us": published.p90_us,
            "raw_p10_us": before.p10,
            "raw_p50_us": before.p50,
            "raw_p90_us": before.p90,
        }

    def _refresh(self, tx: Connection, now: int) -> None:
        if now < self._next_us:
            return
        self._next_us = now + REFRESH_US
        query = select(Forecast.__table__).where(Forecast.ended_us.is_not(None))
        if self._newest_us is not None:
            query = query.where(Forecast.ended_us > self._newest_us - self._overlap.back_us(now))
        rows = tx.execute(query.order_by(Forecast.ended_us.desc(), Forecast.job_id).limit(REMEMBERED)).all()
        unreadable = [row for row in reversed(rows) if not self._learn(row)]
        if unreadable:
            example = f"job {unreadable[0].job_id}, source {unreadable[0].source!r}, key {unreadable[0].key!r}"
            logger.warning(
                "%d stored forecasts cannot be read and are left out, the first: %s", len(unreadable), example
            )
        if rows:
            self._newest_us = newest = rows[0].ended_us
            self._seen |= {(row.job_id, row.source): row.ended_us for row in rows}
            self._seen = {key: ended_us for key, ended_us in self._seen.items() if ended_us > newest - OVERLAP_US}

    def _learn(self, row: Row[Any]) -> bool:
        """False if the row cannot be read, of which nothing is learnt then."""
        if (row.job_id, row.source) in self._seen:
            return True
        try:
            kin = None if row.source == "progress" else Kin.parse(row.key)
            outcome = None if row.raw_p50_us is None else _outcome(row)
        except ValueError:
            return False
        if row.actual_us is None:
            return False
        if kin is not None:
            self._history.add(kin, row.actual_us)
        if outcome is not None:
            self._calibration.add(outcome)
        return True


def _outcome(row: Row[Any]) -> Outcome:
    """`ValueError` if only some of the numbers are there."""
    raw = Quantiles(row.raw_p10_us, row.raw_p50_us, row.raw_p90_us)
    published = Quantiles(row.p10_us, row.p50_us, row.p90_us)
    if None in {*raw, *published}:
        raise ValueError("not all quantiles are there")
    return Outcome(basis=row.source, made_us=row.made_us, raw=raw, published=published, actual_us=row.actual_us)


def _goes_on(tx: Connection, job_id: str) -> bool:
    """Whether it began from another job's checkpoint: how long it takes says little of its like."""
    first = (Attempt.job_id == job_id, Attempt.number == 1)
    return tx.scalar(select(Attempt.resumed_from_step).where(*first)) is not None
