"""Estimates over the database: what is known of jobs, and what forecasts turned out to be worth.

Any number of jobs takes a fixed number of queries; histories are kept in memory and only what is new is read.
"""

import logging
import threading
from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Connection, Select, Table, bindparam, exists, insert, select, update

from service.db import upsert
from service.db.changefeed import Overlap
from service.db.models import Attempt, Forecast, Job
from service.db.records.estimation import EndedForecast
from service.db.records.jobs import JobRecord
from service.estimation import estimates, progress
from service.estimation.calibration import ForecastAccuracy, ForecastCalibration, ForecastOutcome
from service.estimation.estimates import EstimateInput, History, HistoryKey, Quantiles, StepProgress
from service.estimation.progress import EstimatedJob, ProgressReader, RanAttempt
from service.scheduler.model.jobs import Estimate
from torchyard.ids import JobId
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
#: Sources of forecasts from a job's own steps, which tell nothing of jobs like it.
_OWN = (estimates.REPORTED_BASIS, estimates.PRINTED_BASIS)

_FORECASTS = cast("Table", Forecast.__table__)
_JOB: Select[Any] = select(Job.__table__).where(Job.id == bindparam("job"))
_FIRST_RESUMED: Select[Any] = select(Attempt.resumed_from_step).where(
    Attempt.job_id == bindparam("job"), Attempt.number == 1
)
_HAS_ENDED: Select[Any] = select(
    exists().where(_FORECASTS.c.job_id == bindparam("job"), _FORECASTS.c.ended_us.is_not(None))
)
_ENDED: Select[Any] = (
    select(_FORECASTS)
    .where(_FORECASTS.c.ended_us.is_not(None))
    .order_by(_FORECASTS.c.ended_us.desc(), _FORECASTS.c.job_id)
    .limit(REMEMBERED)
)
_ENDED_SINCE = _ENDED.where(_FORECASTS.c.ended_us > bindparam("since_us"))
_END = update(_FORECASTS).where(_FORECASTS.c.job_id == bindparam("job"))
_ADD = insert(_FORECASTS)


@upsert.made_once
def _add_if_new(into: upsert.Into) -> upsert.Insert:
    return into(_FORECASTS).on_conflict_do_nothing()


class Estimator:
    """Knows how long jobs take; safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._history = History()
        self._calibration = ForecastCalibration()
        #: Up to when ended forecasts were read.
        self._read_us: int | None = None
        self._overlap = Overlap(OVERLAP_US, REFRESH_US)
        self._seen: dict[tuple[str, str], int] = {}
        self._next_us = 0
        self._reader = ProgressReader()

    def remaining(self, tx: Connection, jobs: Sequence[EstimatedJob], now: int) -> dict[JobId, Estimate]:
        """Estimate the time that the jobs have left, by job id; those of which nothing is known are absent."""
        with self._lock:
            self._refresh(tx, now)
            asked = self._reader.inputs(tx, jobs, now)
            raws = {job: estimates.raw(given, self._history) for job, given in asked.items()}
            return {job: self._calibration.estimate(raw, asked[job]) for job, raw in raws.items() if raw}

    def of_history(self, tx: Connection, key: HistoryKey, limit_us: int | None, now: int) -> Estimate | None:
        """Estimate the running time of a job that does not exist, from the history of its kind; None: no history."""
        given = EstimateInput(key=key, limit_us=limit_us)
        with self._lock:
            self._refresh(tx, now)
            raw = estimates.raw(given, self._history)
            return self._calibration.estimate(raw, given) if raw else None

    def accuracy(self, tx: Connection, now: int) -> list[ForecastAccuracy]:
        """Return the accuracy of the forecasts of each basis."""
        with self._lock:
            self._next_us = 0
            self._refresh(tx, now)
            return self._calibration.report()

    def begin(self, tx: Connection, job_id: JobId, now: int) -> None:
        """Write down what is expected of a job that runs for the first time; again, or later, it changes nothing."""
        job = JobRecord.one(tx.execute(_JOB, {"job": job_id}))
        if job.attempt != 1 or _goes_on(tx, job_id):
            return
        given = EstimateInput(key=progress.history_key(job), limit_us=job.spec.time_limit_us)
        with self._lock:
            self._refresh(tx, now)
            raw = estimates.raw(given, self._history)
            values = self._values(raw, given) if raw else {"source": "none"}
        values |= {"job_id": job_id, "key": str(given.key), "made_us": now}
        tx.execute(_add_if_new(tx), values)

    def done(self, tx: Connection, job_id: JobId, now: int) -> None:
        """Write down how long a job took, if it has just succeeded and ran from its beginning."""
        job = JobRecord.one(tx.execute(_JOB, {"job": job_id}))
        if job.state != JobState.SUCCEEDED or tx.scalar(_HAS_ENDED, {"job": job_id}) or _goes_on(tx, job_id):
            return
        attempts = progress.attempts(tx, [job_id])
        took = {"actual_us": progress.ran_us(attempts, now), "ended_us": now}
        if not tx.execute(_END, {"job": job_id, **took}).rowcount:  # it was over before anybody heard that it ran
            none = {"job_id": job_id, "key": str(progress.history_key(job)), "source": "none", "made_us": now}
            tx.execute(_ADD, {**none, **took})
        if len(attempts) == 1 and job.total_steps:
            self._judge_progress(tx, job, attempts[0], job.total_steps, now)
        self._next_us = 0

    def _judge_progress(self, tx: Connection, job: JobRecord, attempt: RanAttempt, total: int, now: int) -> None:
        """Write down what the job's own steps told after a minute, and what was then still to come."""
        span = progress.span_at(tx, attempt, attempt.started_us + JUDGED_US)
        if span is None:
            return
        (step0, time0), (step, time_us), printed = span
        steps = StepProgress(
            steps_left=total - step, watched_steps=step - step0, watched_us=time_us - time0, printed=printed
        )
        raw = estimates.from_progress(steps)
        if raw is None:
            return
        given = EstimateInput(
            key=progress.history_key(job), limit_us=job.spec.time_limit_us, attempt_us=time_us - attempt.started_us
        )
        took = {"actual_us": max(0, (now if attempt.ended_us is None else attempt.ended_us) - time_us), "ended_us": now}
        with self._lock:
            values = self._values(raw, given)
        tx.execute(_ADD, {"job_id": job.id, "key": str(given.key), "made_us": time_us, **values, **took})

    def _values(self, raw: estimates.RawEstimate, given: EstimateInput) -> dict[str, Any]:
        published, before = self._calibration.estimate(raw, given), raw.quantiles
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
        if 0 < self._next_us - now <= REFRESH_US:
            return
        self._next_us = now + REFRESH_US
        if self._read_us is not None and now < self._read_us - OVERLAP_US:  # the clock was set back
            self._forget()
        if self._read_us is None:
            found = tx.execute(_ENDED)
        else:
            found = tx.execute(_ENDED_SINCE, {"since_us": self._read_us - self._overlap.back_us(now)})
        rows = EndedForecast.all(found)
        unreadable = [row for row in reversed(rows) if not self._learn(row)]
        if unreadable:
            example = f"job {unreadable[0].job_id}, source {unreadable[0].source!r}, key {unreadable[0].key!r}"
            logger.warning(
                "%d stored forecasts cannot be read and are left out, the first: %s", len(unreadable), example
            )
        if rows:
            self._read_us = read_us = min(rows[0].ended_us, now)
            self._seen |= {(row.job_id, row.source): row.ended_us for row in rows}
            self._seen = {key: ended_us for key, ended_us in self._seen.items() if ended_us > read_us - OVERLAP_US}

    def _forget(self) -> None:
        """Forget what was learnt, to read it again with all that seems to end in the future: that is known then."""
        self._history, self._calibration = History(), ForecastCalibration()
        self._read_us, self._seen = None, {}

    def _learn(self, row: EndedForecast) -> bool:
        """Learn from the row; False, and nothing is learnt, if it cannot be read."""
        if (row.job_id, row.source) in self._seen:
            return True
        try:
            key = None if row.source in _OWN else HistoryKey.parse(row.key)
            if row.actual_us is None:
                return False
            outcome = None if row.raw_p50_us is None else _forecast_outcome(row, row.actual_us)
        except ValueError:
            return False
        if key is not None:
            self._history.add(key, row.actual_us)
        if outcome is not None:
            self._calibration.add(outcome)
        return True


def _forecast_outcome(row: EndedForecast, actual_us: int) -> ForecastOutcome:
    """Return the outcome; `ValueError` if only some of the numbers are there."""
    raw = _quantiles(row.raw_p10_us, row.raw_p50_us, row.raw_p90_us)
    published = _quantiles(row.p10_us, row.p50_us, row.p90_us)
    return ForecastOutcome(basis=row.source, made_us=row.made_us, raw=raw, published=published, actual_us=actual_us)


def _quantiles(p10_us: int | None, p50_us: int | None, p90_us: int | None) -> Quantiles:
    if p10_us is None or p50_us is None or p90_us is None:
        raise ValueError("not all quantiles are there")
    return Quantiles(p10_us, p50_us, p90_us)


def _goes_on(tx: Connection, job_id: JobId) -> bool:
    """Tell if the job began from another job's checkpoint: how long it takes says little of its like."""
    return tx.scalar(_FIRST_RESUMED, {"job": job_id}) is not None
