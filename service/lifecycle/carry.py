"""Which earlier attempt's files the next attempt of a job begins with."""

from typing import Any

from sqlalchemy import Connection, Row, exists, select

from service.db.models import Attempt, MetricSeries
from service.lifecycle.rows import JobRow
from torchyard.states import AttemptState


def choose(tx: Connection, job: JobRow) -> str | None:
    """The attempt whose files the next one finds, if it restores no checkpoint: the job's last one that ran, else the
    last one of the job that it goes on from. None: it begins with the files that it was submitted with.

    None also after an attempt that began with such files and failed before it got any further: they may be why.
    """
    if not _carries(job.spec):
        return None
    if job.attempt and (last := _last_run(tx, job.id)) is not None:
        return None if _in_vain(tx, last) else str(last.id)
    source = _last_run(tx, job.carry_from) if job.carry_from else None
    return None if source is None else str(source.id)


def _carries(spec: dict[str, Any]) -> bool:
    """A recipe goes on from its checkpoints alone, and a live folder is as it was left."""
    return bool(spec.get("carry", True)) and not spec.get("live") and not spec.get("recipe")


def _last_run(tx: Connection, job_id: str) -> Row[Any] | None:
    query = (
        select(Attempt.id, Attempt.state, Attempt.carried_from, Attempt.saved, Attempt.result)
        .where(Attempt.job_id == job_id, Attempt.started_us.is_not(None))
        .order_by(Attempt.number.desc())
        .limit(1)
    )
    return tx.execute(query).one_or_none()


def _in_vain(tx: Connection, last: Row[Any]) -> bool:
    if last.carried_from is None or last.saved or last.state != AttemptState.FAILED or (last.result or {}).get("stop"):
        return False
    stepped = exists().where(MetricSeries.attempt_id == last.id, MetricSeries.last_step.is_not(None))
    return not tx.scalar(select(stepped))
