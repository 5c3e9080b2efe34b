"""Jobs, attempts and events as the API shows them: a fixed number of queries for any number of jobs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, case, func, select
from sqlalchemy.orm import aliased

from service.db.models import Allocation, Attempt, Device, Event, Job, Member, MetricSeries, MetricStream, User
from service.db.special_values import SPECIAL_VALUES
from service.infra.times import moment
from service.lifecycle import outcome
from service.storage import retention
from torchyard import api
from torchyard.spec import PRIORITY_RANK, JobSpec, Priority
from torchyard.states import JOB_HOLDS_GPUS, AttemptState, JobState, StopReason
from torchyard.wire import DeviceKind, Result

PRIORITIES: dict[int, Priority] = {rank: priority for priority, rank in PRIORITY_RANK.items()}
_JOBS: Select[Any] = (
    select(Job.__table__, User.name.label("user"))
    .join(User, User.id == Job.user_id)
    .where(Job.id.in_(bindparam("ids", expanding=True)))
)
NO_STORAGE = api.Storage(checkpoints=0, outputs=0, logs=0)


def moment_or_none(us: int | None) -> Any:
    """A stored time that may be absent."""
    return None if us is None else moment(us)


def jobs(tx: Connection, ids: Sequence[str]) -> list[api.Job]:
    """The jobs with these ids, in their order."""
    if not ids:
        return []
    rows = {row.id: row for row in tx.execute(_JOBS, {"ids": list(ids)})}
    holding = [row.id for row in rows.values() if row.state in JOB_HOLDS_GPUS]
    devices = _devices(tx, holding)
    series = _series(tx, [row.id for row in rows.values() if row.attempt])
    starts = _starts(tx, [row.id for row in rows.values() if row.state == JobState.RUNNING and row.total_steps])
    storage = _storage(tx, [row.id for row in rows.values() if row.attempt])
    return [
        job(
            rows[job_id],
            devices=devices.get(job_id, []),
            series=series.get(job_id, []),
            start=starts.get(job_id),
            storage=storage.get(job_id, NO_STORAGE),
        )
        for job_id in ids
        if job_id in rows
    ]


def job(
    row: Row[Any],
    *,
    devices: list[api.HeldDevice],
    series: Sequence[Row[Any]],
    start: Row[Any] | None,
    storage: api.Storage,
) -> api.Job:
    """One job from its row (with `user`, its owner's name) and what belongs to it."""
    return api.Job(
        id=row.id,
        number=row.number,
        name=row.name,
        user=row.user,
        project=row.project,
        state=JobState(row.state),
        held=row.held,
        priority=PRIORITIES[row.priority],
        tags=row.tags,
        version=row.version,
        created_at=moment(row.created_us),
        started_at=moment_or_none(row.started_us),
        ended_at=moment_or_none(row.ended_us),
        attempt=row.attempt,
        gpus=row.spec["resources"]["gpus"] * row.spec["resources"].get("nodes", 1),
        devices=devices,
        progress=_progress(row, series, start),
        latest=_latest(series),
        stop=StopReason(row.stop) if row.stop else None,
        error=api.JobError.model_validate(row.error) if row.error else None,
        storage=storage,
        rerun_of=row.rerun_of,
        resumed_from=row.restore_checkpoint,
        spec=row.spec,
        blocked=row.blocked and row.state == JobState.QUEUED,
        group=row.group_id,
        trial=None if row.trial is None else row.trial + 1,
        parameters=row.parameters,
        discarded_at=moment_or_none(row.discarded_us),
        inexact=row.inexact,
        unsaved=row.unsaved,
    )


def _storage(tx: Connection, job_ids: Sequence[str]) -> dict[str, api.Storage]:
    return retention.storage(tx, job_ids) if job_ids else {}


def _held(row: Row[Any]) -> api.HeldDevice:
    return api.HeldDevice(
        node=row.node,
        uuid=row.uuid,
        index=row.at,  # a row's own `index` is a method
        kind=DeviceKind(row.kind),
    )


def _grouped(rows: Iterable[Row[Any]]) -> dict[str, list[Row[Any]]]:
    groups: defaultdict[str, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        groups[row.owner].append(row)
    return groups


def _devices(tx: Connection, job_ids: Sequence[str]) -> dict[str, list[api.HeldDevice]]:
    if not job_ids:
        return {}
    query = _held_by(Attempt.job_id).where(Attempt.job_id.in_(job_ids), Allocation.live)
    return {owner: [_held(row) for row in rows] for owner, rows in _grouped(tx.execute(query)).items()}


def _held_by(owner: Any) -> Any:
    return (
        select(owner.label("owner"), Allocation.node, Allocation.uuid, Allocation.index.label("at"), Device.kind)
        .join(Attempt, Attempt.id == Allocation.attempt_id)
        .join(Device, and_(Device.node == Allocation.node, Device.uuid == Allocation.uuid))
        .order_by(Allocation.node, Allocation.index)
    )


def _series(tx: Connection, job_ids: Sequence[str]) -> dict[str, list[Row[Any]]]:
    """Series of the lowest rank that reports, the oldest attempt first."""
    if not job_ids:
        return {}
    other = aliased(MetricSeries)
    lowest = select(func.min(other.rank)).where(other.job_id == MetricSeries.job_id).scalar_subquery()
    query = (
        select(
            MetricSeries.job_id.label("owner"),
            MetricSeries.name,
            MetricSeries.last_value,
            MetricSeries.last_special,
            MetricSeries.last_time_us,
        )
        .where(MetricSeries.job_id.in_(job_ids), MetricSeries.rank == lowest, MetricSeries.last_step.is_not(None))
        .order_by(MetricSeries.attempt, MetricSeries.last_time_us)
    )
    return _grouped(tx.execute(query))


def _starts(tx: Connection, job_ids: Sequence[str]) -> dict[str, Row[Any]]:
    """When and at which step the current attempts began."""
    if not job_ids:
        return {}
    query = (
        select(Attempt.job_id, Attempt.started_us, Attempt.resumed_from_step)
        .join(Job, and_(Job.id == Attempt.job_id, Job.attempt == Attempt.number))
        .where(Job.id.in_(job_ids))
    )
    return dict(_by_job(tx.execute(query)))


def _by_job(rows: Iterable[Any]) -> Iterable[tuple[str, Row[Any]]]:
    return ((row.job_id, row) for row in rows)


def _latest(series: Sequence[Row[Any]]) -> dict[str, api.Number]:
    return {row.name: SPECIAL_VALUES[row.last_special or 0] or row.last_value for row in series}


def _progress(row: Row[Any], series: Sequence[Row[Any]], start: Row[Any] | None) -> api.Progress | None:
    if row.step is None:
        return None
    return api.Progress(step=row.step, total_steps=row.total_steps, eta_s=_eta(row, series, start))


def _eta(row: Row[Any], series: Sequence[Row[Any]], start: Row[Any] | None) -> float | None:
    """Seconds to go as of the last report; it does not run on with the clock, so the job's ETag stays true."""
    if start is None or start.started_us is None or not series or not row.total_steps:
        return None
    done = row.step - (start.resumed_from_step or 0)
    elapsed_us = max(item.last_time_us for item in series) - start.started_us
    if done <= 0 or elapsed_us <= 0:
        return None
    return float(round(max(0, row.total_steps - row.step) * elapsed_us / done / 1e6, 1))


def attempts(tx: Connection, job_id: str) -> list[api.Attempt]:
    """A job's attempts, the first one first."""
    query = select(Attempt.__table__).where(Attempt.job_id == job_id).order_by(Attempt.number)
    devices = _grouped(tx.execute(_held_by(Attempt.id).where(Attempt.job_id == job_id)))
    members, lost = _members(tx, job_id), _lost_records(tx, job_id)
    return [
        _attempt(row, members[row.id], [_held(device) for device in devices.get(row.id, [])], lost.get(row.id, 0))
        for row in tx.execute(query)
    ]


def _lost_records(tx: Connection, job_id: str) -> dict[str, int]:
    """Metric records of each attempt that were not stored. Lines that could not be read are among the gaps between
    the others, unless the process did not number them.
    """
    more = case((MetricStream.lost > MetricStream.skipped, MetricStream.lost), else_=MetricStream.skipped)
    query = (
        select(MetricStream.attempt_id, func.sum(more))
        .join(Attempt, Attempt.id == MetricStream.attempt_id)
        .where(Attempt.job_id == job_id)
        .group_by(MetricStream.attempt_id)
    )
    return {row[0]: int(row[1]) for row in tx.execute(query)}


def _members(tx: Connection, job_id: str) -> dict[str, list[api.Member]]:
    spec = tx.scalar(select(Job.spec).where(Job.id == job_id))
    ranks = _local_world_size(spec) if spec else 1
    query = (
        select(Member.attempt_id.label("owner"), Member.node, Member.node_rank, Member.ended_us, Member.settled)
        .join(Attempt, Attempt.id == Member.attempt_id)
        .where(Attempt.job_id == job_id)
        .order_by(Member.node_rank)
    )
    return {owner: [_member(row, ranks) for row in rows] for owner, rows in _grouped(tx.execute(query)).items()}


def _local_world_size(spec: dict[str, Any]) -> int:
    try:
        return JobSpec.model_validate(spec).local_world_size
    except ValueError:  # stored when other rules held
        return 1


def _member(row: Row[Any], ranks: int) -> api.Member:
    first = row.node_rank * ranks
    return api.Member(
        node=row.node,
        node_rank=row.node_rank,
        first_rank=first,
        last_rank=first + ranks - 1,
        ended_at=moment_or_none(row.ended_us),
        settled=row.settled,
    )


def _attempt(row: Row[Any], members: list[api.Member], devices: list[api.HeldDevice], lost_records: int) -> api.Attempt:
    result = row.result or {}
    return api.Attempt(
        id=row.id,
        number=row.number,
        state=AttemptState(row.state),
        node=members[0].node,
        members=members,
        devices=devices,
        created_at=moment(row.created_us),
        claimed_at=moment_or_none(row.claimed_us),
        started_at=moment_or_none(row.started_us),
        ended_at=moment_or_none(row.ended_us),
        resumed_from_step=row.resumed_from_step,
        exit_code=result.get("exit_code"),
        signal=result.get("signal"),
        error=_attempt_error(row.state, result),
        dropped_log_bytes=result.get("dropped_log_bytes", 0),
        dropped_records=max(result.get("dropped_records", 0), lost_records),
        settled=row.claimed_us is None or all(member.settled for member in members),
        carried_from=row.carried_from,
    )


def _attempt_error(state: str, result: dict[str, Any]) -> api.JobError | None:
    if not result or state not in {AttemptState.FAILED, AttemptState.LOST}:
        return None
    return outcome.error_of(Result.model_validate(result))


def event(row: Row[Any]) -> api.Event:
    """One event from its row."""
    return api.Event(
        seq=row.seq,
        at=moment(row.at_us),
        kind=row.kind,
        state=JobState(row.state),
        attempt=row.attempt,
        actor=row.actor,
        message=row.message,
        data=row.data,
    )


def events(tx: Connection, job_id: str, after: int, limit: int) -> list[api.Event]:
    """Events of a job after a sequence number, the oldest first."""
    query = select(Event.__table__).where(Event.job_id == job_id, Event.seq > after).order_by(Event.seq).limit(limit)
    return [event(row) for row in tx.execute(query)]
