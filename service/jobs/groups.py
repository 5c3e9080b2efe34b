"""Groups as the API shows them: the trials of a sweep, counted and compared."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Select, exists, func, or_, select

from service.db.models import Attempt, Group, Job, MetricSeries, MetricStream, User
from service.db.records.jobs import ShownGroup, SpecRecord
from service.db.records.metrics import stored_value
from service.errors import field_problem, not_found
from service.identity.callers import Caller
from service.identity.visibility import found_for, may_read_env, readable
from service.infra.etags import etag
from service.infra.times import moment
from service.jobs import present as job_pages
from service.jobs.find import Filters, has_value, position, tagged, within
from torchyard import api
from torchyard.ids import JobId
from torchyard.states import JOB_FINAL, JobState, StopReason
from torchyard.translatable import TranslatableText

Mode = Literal["min", "max"]
ID_PREFIX = "grp-"
_GROUPS: Select[Any] = select(*ShownGroup.columns(Group, User.name.label("user"))).join(User, User.id == Group.user_id)


@dataclass(frozen=True, kw_only=True)
class SweepObjective:
    """The metric that trials are compared by; without a name they are not."""

    metric: str | None = None
    mode: Mode = "min"


def find(tx: Connection, ref: str, caller: Caller) -> ShownGroup:
    """Return a group by its id or its number; ``not-found`` if there is none that the caller may read."""
    number = ref.isascii() and ref.isdigit() and len(ref) <= 18
    group = ShownGroup.first(tx.execute(_GROUPS.where(Group.number == int(ref) if number else Group.id == ref)))
    found = found_for(caller, group)
    if found is None:
        raise not_found("sweep", ref)
    return found


def of_job(tx: Connection, job_id: JobId) -> ShownGroup:
    """Return the group of a trial."""
    return ShownGroup.one(tx.execute(_GROUPS.join(Job, Job.group_id == Group.id).where(Job.id == job_id)))


def page(
    tx: Connection, caller: Caller, filters: Filters, cursor: str | None, limit: int
) -> tuple[list[ShownGroup], str | None]:
    """Return the newest groups that pass and that the caller may read, and the cursor of the next page.

    A state passes that any trial is in.
    """
    query = _filtered(_GROUPS, filters).where(readable(caller, Group)).order_by(Group.number.desc()).limit(limit + 1)
    if cursor is not None:
        query = query.where(Group.number < position(cursor))
    rows = ShownGroup.all(tx.execute(query))
    return rows[:limit], str(rows[limit - 1].number) if len(rows) > limit else None


def _filtered(query: Select[Any], filters: Filters) -> Select[Any]:
    query = within(query, Group.number, filters)
    if filters.user:
        query = query.where(User.name == filters.user)
    if filters.project:
        query = query.where(Group.project == filters.project)
    if words := (filters.q or "").strip():
        query = query.where(_matches(words))
    if filters.state:
        query = query.where(exists().where(Job.group_id == Group.id, Job.state.in_(filters.state)))
    if filters.tag:
        query = query.where(exists().where(Job.group_id == Group.id, tagged(filters.tag)))
    for wanted in filters.metric:
        query = query.where(exists().where(Job.group_id == Group.id, has_value(wanted)))
    return query


def _matches(words: str) -> ColumnElement[bool]:
    """Return the condition of sweeps with the words in their name, or with this number or the beginning of this id."""
    alternatives: list[ColumnElement[bool]] = [Group.name.icontains(words, autoescape=True)]
    if words.startswith(ID_PREFIX):
        alternatives.append(Group.id.startswith(words, autoescape=True))
    if words.isascii() and words.isdigit() and len(words) <= 18:
        alternatives.append(Group.number == int(words))
    return or_(*alternatives)


def tag(tx: Connection, group: ShownGroup, caller: Caller, *asked: object) -> str:
    """Return the ETag of a group as the caller sees it: whatever changes a trial's presentation changes it."""
    trials = select(func.sum(Job.version), func.sum(Job.last_event)).where(Job.group_id == group.id)
    metrics = (
        select(func.sum(MetricStream.offset))
        .join(Attempt, Attempt.id == MetricStream.attempt_id)
        .join(Job, Job.id == Attempt.job_id)
        .where(Job.group_id == group.id)
    )
    whole = may_read_env(caller, group.user_id)
    return etag(group, tuple(tx.execute(trials).one()), tx.scalar(metrics), whole, *asked)


def objective(tx: Connection, group: ShownGroup, metric: str | None, mode: Mode | None) -> SweepObjective:
    """Return the objective that is asked for, or else the one that the sweep or its jobs name."""
    known = _own_objective(tx, group)
    if metric is None:
        return known if mode is None else SweepObjective(metric=known.metric, mode=mode)
    return SweepObjective(metric=metric, mode=mode or (known.mode if known.metric == metric else "min"))


def _own_objective(tx: Connection, group: ShownGroup) -> SweepObjective:
    query = select(Job.spec).where(Job.group_id == group.id).order_by(Job.trial).limit(1)
    trial = SpecRecord.first(tx.execute(query))
    said = group.sweep.stop or (None if trial is None else trial.spec.checkpoint.keep_best)
    return SweepObjective() if said is None else SweepObjective(metric=said.metric, mode=said.mode)


def present(tx: Connection, group: ShownGroup, caller: Caller, by: SweepObjective | None = None) -> api.Group:
    """Present one group with its best trial."""
    by = by or objective(tx, group, None, None)
    best = ranked(tx, group, by)[:1]
    return _group(group, _counts(tx, [group.id])[group.id], by, next(iter(job_pages.jobs(tx, best, caller)), None))


def present_all(tx: Connection, groups: Sequence[ShownGroup]) -> list[api.Group]:
    """Present several groups, without comparing their trials."""
    counts = _counts(tx, [group.id for group in groups])
    return [_group(group, counts[group.id], SweepObjective(), None) for group in groups]


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


def _group(row: ShownGroup, counts: _Counts, by: SweepObjective, best: api.Job | None) -> api.Group:
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
        sweep=dict(row.sweep.data),
        # Where none waits, as after a cancel, there is nothing left to resume.
        paused=row.paused if JobState.QUEUED in counts.states else None,
        held=counts.held,
        states=counts.states,
        stopped_early=counts.early,
        metric=by.metric,
        mode=by.mode if by.metric else None,
        best=best,
    )


def ranked(tx: Connection, group: ShownGroup, by: SweepObjective) -> list[JobId]:
    """Return the ids of the trials that have reported the metric, the best last value first; NaN is no value."""
    if by.metric is None:
        return []
    sign = 1 if by.mode == "min" else -1
    values = {job: value for job, value in _values(tx, group.id, by.metric).items() if not math.isnan(value)}
    return sorted(values, key=lambda job: (sign * values[job], job))


def _values(tx: Connection, group_id: str, metric: str) -> dict[JobId, float]:
    """Load the last value of each trial, of its newest attempt's lowest rank."""
    query = (
        select(MetricSeries.job_id, MetricSeries.last_value, MetricSeries.last_special)
        .join(Job, Job.id == MetricSeries.job_id)
        .where(Job.group_id == group_id, MetricSeries.name == metric, MetricSeries.last_step.is_not(None))
        .order_by(MetricSeries.rank.desc(), MetricSeries.attempt)
    )
    return {job: number(value, special) for job, value, special in tx.execute(query)}


def number(value: float | None, special: int) -> float:
    """Return a metric's value from its two columns, as a number."""
    return float(stored_value(value, special))


def trials(
    tx: Connection,
    group: ShownGroup,
    by: SweepObjective,
    caller: Caller,
    *,
    best_first: bool,
    cursor: str | None,
    limit: int,
) -> tuple[list[api.Job], str | None]:
    """Return a page of trials and the next cursor: by their numbers, or the best first, those without a value last."""
    start = position(cursor or "0")
    query = select(Job.id).where(Job.group_id == group.id).order_by(Job.trial)
    if best_first:
        if by.metric is None:
            raise field_problem(
                "metric",
                TranslatableText(
                    "sweep-metric", "this sweep names no metric: say which one its trials are compared by"
                ),
            )
        first = ranked(tx, group, by)
        ids = list(dict.fromkeys([*first, *tx.scalars(query)]))[start : start + limit + 1]
    else:
        ids = list(tx.scalars(query.where(Job.trial >= start).limit(limit + 1)))
    following = str(start + limit) if len(ids) > limit else None
    return job_pages.jobs(tx, ids[:limit], caller), following
