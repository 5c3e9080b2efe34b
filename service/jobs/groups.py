"""Groups as the API shows them: the trials of a sweep, counted and compared."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, exists, func, select

from service.db.models import Attempt, Group, Job, MetricSeries, MetricStream, Tag, User
from service.db.special_values import SPECIAL_VALUES
from service.errors import field_problem, not_found
from service.infra.etags import etag
from service.infra.times import moment
from service.jobs import present as job_pages
from service.jobs.find import Filters, position
from torchyard import api
from torchyard.states import JOB_FINAL, JobState, StopReason

Mode = Literal["min", "max"]
_GROUPS: Select[Any] = select(Group.__table__, User.name.label("user")).join(User, User.id == Group.user_id)


@dataclass(frozen=True, kw_only=True)
class Objective:
    """The metric that trials are compared by; without a name they are not."""

    metric: str | None = None
    mode: Mode = "min"


def find(tx: Connection, ref: str) -> Row[Any]:
    """A group by its id or its number; a ``not-found`` problem if there is none."""
    number = ref.isascii() and ref.isdigit() and len(ref) <= 18
    row = tx.execute(_GROUPS.where(Group.number == int(ref) if number else Group.id == ref)).one_or_none()
    if row is None:
        raise not_found("sweep", ref)
    return row


def of_job(tx: Connection, job_id: str) -> Row[Any]:
    """The group of a trial."""
    return tx.execute(_GROUPS.join(Job, Job.group_id == Group.id).where(Job.id == job_id)).one()


def page(tx: Connection, filters: Filters, cursor: str | None, limit: int) -> tuple[list[Row[Any]], str | None]:
    """The newest groups that pass, and the cursor of the next page; a state passes that any trial is in."""
    query = _filtered(_GROUPS, filters).order_by(Group.number.desc()).limit(limit + 1)
    if cursor is not None:
        query = query.where(Group.number < position(cursor))
    rows = list(tx.execute(query))
    return rows[:limit], str(rows[limit - 1].number) if len(rows) > limit else None


def _filtered(query: Select[Any], filters: Filters) -> Select[Any]:
    if filters.user:
        query = query.where(User.name == filters.user)
    if filters.project:
        query = query.where(Group.project == filters.project)
    if filters.q:
        query = query.where(Group.name.icontains(filters.q.strip(), autoescape=True))
    if filters.state:
        query = query.where(exists().where(Job.group_id == Group.id, Job.state.in_(filters.state)))
    if filters.tag:
        query = query.where(exists().where(Job.group_id == Group.id, Tag.job_id == Job.id, Tag.tag.in_(filters.tag)))
    return query


def tag(tx: Connection, group: Row[Any], *asked: object) -> str:
    """The ETag of a group's presentation: whatever changes a trial's presentation changes it."""
    trials = select(func.sum(Job.version), func.sum(Job.last_event)).where(Job.group_id == group.id)
    metrics = (
        select(func.sum(MetricStream.offset))
        .join(Attempt, Attempt.id == MetricStream.attempt_id)
        .join(Job, Job.id == Attempt.job_id)
        .where(Job.group_id == group.id)
    )
    return etag(tuple(group), tuple(tx.execute(trials).one()), tx.scalar(metrics), *asked)


def objective(tx: Connection, group: Row[Any], metric: str | None, mode: Mode | None) -> Objective:
    """What is asked for, or what the sweep or its jobs say themselves."""
    known = _own_objective(tx, group)
    if metric is None:
        return known if mode is None else Objective(metric=known.metric, mode=mode)
    return Objective(metric=metric, mode=mode or (known.mode if known.metric == metric else "min"))


def _own_objective(tx: Connection, group: Row[Any]) -> Objective:
    if stop := group.sweep.get("stop"):
        return Objective(metric=stop["metric"], mode=stop["mode"])
    spec = tx.scalar(select(Job.spec).where(Job.group_id == group.id).order_by(Job.trial).limit(1)) or {}
    best = (spec.get("checkpoint") or {}).get("keep_best")
    return Objective(metric=best["metric"], mode=best["mode"]) if best else Objective()


def present(tx: Connection, group: Row[Any], by: Objective | None = None) -> api.Group:
    """One group with its best trial."""
    by = by or objective(tx, group, None, None)
    best = ranked(tx, group, by)[:1]
    return _group(group, _counts(tx, [group.id])[group.id], by, next(iter(job_pages.jobs(tx, best)), None))


def present_all(tx: Connection, groups: Sequence[Row[Any]]) -> list[api.Group]:
    """Several groups, without comparing their trials."""
    counts = _counts(tx, [group.id for group in groups])
    return [_group(group, counts[group.id], Objective(), None) for group in groups]


@dataclass(kw_only=True)
class _Counts:
    states: dict[JobState, int]
    held: int = 0
    early: int = 0
    ended_us: int = 0


def _counts(tx: Connection, groups: Sequence[str]) -> dict[str, _Counts]:
    query = (
        select(Job.group_id, Job.state, Job.held, Job.stop, func.count().label("jobs"), func.max(Job.ended_us))
        .where(Job.group_id.in_(groups))
        .group_by(Job.group_id, Job.state, Job.held, Job.stop)
        .order_by(Job.state)
    )
    counts = {group: _Counts(states={}) for group in groups}
    for group, state, held, stop, jobs, ended_us in tx.execute(query):
        count = counts[str(group)]
        count.states[JobState(state)] = count.states.get(JobState(state), 0) + jobs
        count.held += jobs if held and state == JobState.QUEUED else 0
        count.early += jobs if state == JobState.CANCELLED and stop == StopReason.EARLY else 0
        count.ended_us = max(count.ended_us, ended_us or 0)
    return counts


def _group(row: Row[Any], counts: _Counts, by: Objective, best: api.Job | None) -> api.Group:
    over = counts.states.keys() <= JOB_FINAL
    return api.Group(
        id=row.id,
        number=row.number,
        name=row.name,
        user=row.user,
        project=row.project,
        created_at=moment(row.created_us),
        ended_at=moment(counts.ended_us) if over else None,
        size=row.size,
        sweep=row.sweep,
        # Where none waits, as after a cancel, there is nothing left to resume.
        paused=row.paused if JobState.QUEUED in counts.states else None,
        held=counts.held,
        states=counts.states,
        stopped_early=counts.early,
        metric=by.metric,
        mode=by.mode if by.metric else None,
        best=best,
    )


def ranked(tx: Connection, group: Row[Any], by: Objective) -> list[str]:
    """Ids of the trials that have reported the metric, the best last value first; NaN is no value."""
    if by.metric is None:
        return []
    sign = 1 if by.mode == "min" else -1
    values = {job: value for job, value in _values(tx, group.id, by.metric).items() if not math.isnan(value)}
    return sorted(values, key=lambda job: (sign * values[job], job))


def _values(tx: Connection, group_id: str, metric: str) -> dict[str, float]:
    """The last value of each trial, of its newest attempt's lowest rank."""
    query = (
        select(MetricSeries.job_id, MetricSeries.last_value, MetricSeries.last_special)
        .join(Job, Job.id == MetricSeries.job_id)
        .where(Job.group_id == group_id, MetricSeries.name == metric, MetricSeries.last_step.is_not(None))
        .order_by(MetricSeries.rank.desc(), MetricSeries.attempt)
    )
    return {job: number(value, special) for job, value, special in tx.execute(query)}


def number(value: float | None, special: int) -> float:
    """A stored value of a metric."""
    return value if value is not None else float(SPECIAL_VALUES[special] or "nan")


def trials(
    tx: Connection, group: Row[Any], by: Objective, *, best_first: bool, cursor: str | None, limit: int
) -> tuple[list[api.Job], str | None]:
    """A page of trials, by their numbers or the best first (then those that have no value), and the next cursor."""
    start = position(cursor or "0")
    query = select(Job.id).where(Job.group_id == group.id).order_by(Job.trial)
    if best_first:
        if by.metric is None:
            raise field_problem("metric", "this sweep names no metric: say which one its trials are compared by")
        first = ranked(tx, group, by)
        ids = list(dict.fromkeys([*first, *tx.scalars(query)]))[start : start + limit + 1]
    else:
        ids = list(tx.scalars(query.where(Job.trial >= start).limit(limit + 1)))
    following = str(start + limit) if len(ids) > limit else None
    return job_pages.jobs(tx, ids[:limit]), following
