"""Jobs, attempts and events as the API shows them: a fixed number of queries for any number of jobs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import BindParameter, Connection, Result, Select, and_, bindparam, case, func, or_, select
from sqlalchemy.orm import aliased

from service.attempts import tracked
from service.db.models import Allocation, Attempt, Device, Event, Job, Member, MetricSeries, MetricStream, User
from service.db.records.attempts import AttemptRecord, AttemptStart, DeviceHold, ShownMember
from service.db.records.jobs import EventRecord, ShownJob, SpecRecord
from service.db.records.metrics import LastMetric
from service.identity.callers import Caller
from service.identity.visibility import may_read_env, without_values
from service.infra.times import moment
from service.lifecycle import outcome
from service.storage import retention
from torchyard import api
from torchyard.ids import AttemptId, JobId
from torchyard.spec import PRIORITY_RANK, Priority
from torchyard.states import JOB_HOLDS_GPUS, AttemptState, JobState

R = TypeVar("R")
_WITH_ERROR = frozenset({AttemptState.FAILED, AttemptState.LOST})
PRIORITIES: dict[int, Priority] = {rank: priority for priority, rank in PRIORITY_RANK.items()}
_LISTED: BindParameter[Any] = bindparam("ids", expanding=True)
_JOBS: Select[Any] = (
    select(*ShownJob.columns(Job, User.name.label("user")))
    .join(User, User.id == Job.user_id)
    .where(Job.id.in_(_LISTED))
)
_OTHER_SERIES = aliased(MetricSeries)
_LOWEST_RANK = select(func.min(_OTHER_SERIES.rank)).where(_OTHER_SERIES.job_id == MetricSeries.job_id).scalar_subquery()
_SERIES: Select[Any] = (
    select(*LastMetric.columns(MetricSeries))
    .where(MetricSeries.job_id.in_(_LISTED), MetricSeries.rank == _LOWEST_RANK, MetricSeries.last_step.is_not(None))
    .order_by(MetricSeries.attempt, MetricSeries.last_time_us)
)
_STARTS: Select[Any] = (
    select(*AttemptStart.columns(Attempt))
    .join(Job, and_(Job.id == Attempt.job_id, Job.attempt == Attempt.number))
    .where(Job.id.in_(_LISTED))
)
NO_STORAGE = api.Storage(checkpoints=0, outputs=0, logs=0)


def moment_or_none(us: int | None) -> datetime | None:
    """Return a stored time, which may be absent."""
    return None if us is None else moment(us)


def jobs(tx: Connection, ids: Sequence[JobId], caller: Caller | None) -> list[api.Job]:
    """Return the jobs with these ids, which the caller may read, in their order; ids of no job are left out.

    The values of a job's variables are shown to its owner and to administrators; None is for several readers at once.
    """
    if not ids:
        return []
    rows = {row.id: row for row in ShownJob.each(tx.execute(_JOBS, {"ids": list(ids)}))}
    holding = [row.id for row in rows.values() if row.state in JOB_HOLDS_GPUS]
    devices = _devices(tx, holding)
    series = _series(tx, [row.id for row in rows.values() if row.attempt])
    starts = _starts(tx, holding)
    storage = _storage(tx, [row.id for row in rows.values() if row.attempt])
    return [
        job(
            rows[job_id],
            devices=devices.get(job_id, []),
            series=series.get(job_id, []),
            start=starts.get(job_id),
            storage=storage.get(job_id, NO_STORAGE),
            values=caller is not None and may_read_env(caller, rows[job_id].user_id),
        )
        for job_id in ids
        if job_id in rows
    ]


def job(
    row: ShownJob,
    *,
    devices: list[api.HeldDevice],
    series: Sequence[LastMetric],
    start: AttemptStart | None,
    storage: api.Storage,
    values: bool,
) -> api.Job:
    """Present a job with its devices, its metrics and what it stores; with the values of its variables or without."""
    return api.Job(
        id=row.id,
        number=row.number,
        name=row.name,
        user=row.user,
        project=row.project,
        state=row.state,
        held=row.held,
        priority=PRIORITIES[row.priority],
        tags=row.tags,
        version=row.version,
        created_at=moment(row.created_us),
        started_at=moment_or_none(row.started_us),
        ended_at=moment_or_none(row.ended_us),
        attempt=row.attempt,
        gpus=row.spec.total_gpus,
        devices=devices,
        progress=_progress(row, series, start),
        latest=_latest(series),
        stop=row.stop,
        error=row.error,
        storage=storage,
        rerun_of=row.rerun_of,
        resumed_from=row.restore_checkpoint,
        spec=dict(row.spec.data) if values else without_values(row.spec.data),
        blocked=row.blocked and row.state == JobState.QUEUED,
        group=row.group_id,
        trial=None if row.trial is None else row.trial + 1,
        parameters=row.parameters,
        discarded_at=moment_or_none(row.discarded_us),
        inexact=row.inexact,
        inexact_parts=row.inexact_parts or [],
        unsaved=row.unsaved,
        unsaved_parts=row.unsaved_parts or [],
        ran_s=row.ran_us / 1e6,
        running_since=moment_or_none(start.started_us if start else None),
    )


def _storage(tx: Connection, job_ids: Sequence[JobId]) -> dict[JobId, api.Storage]:
    return retention.storage(tx, job_ids) if job_ids else {}


def _held(row: DeviceHold) -> api.HeldDevice:
    return api.HeldDevice(node=row.node, uuid=row.uuid, index=row.index, kind=row.kind)


def _grouped(rows: Iterable[R], key: Callable[[R], str]) -> dict[str, list[R]]:
    groups: defaultdict[str, list[R]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def _devices(tx: Connection, job_ids: Sequence[JobId]) -> dict[str, list[api.HeldDevice]]:
    if not job_ids:
        return {}
    return _by_owner(tx.execute(_HELD_BY_JOBS, {"ids": job_ids}))


def _holds(owner: Any) -> Select[Any]:
    """Return the query for devices that jobs or attempts hold or held, with their owner."""
    return (
        select(*DeviceHold.columns(Allocation, owner.label("owner"), Device.kind.label("kind")))
        .join(Attempt, Attempt.id == Allocation.attempt_id)
        .join(Device, and_(Device.node == Allocation.node, Device.uuid == Allocation.uuid))
        .order_by(Allocation.node, Allocation.index)
    )


_HELD_BY_JOBS = _holds(Attempt.job_id).where(Attempt.job_id.in_(_LISTED), Allocation.live)
_HELD_BY_ATTEMPTS = _holds(Attempt.id).where(Attempt.job_id == bindparam("job"))


def _by_owner(result: Result[Any]) -> dict[str, list[api.HeldDevice]]:
    held = _grouped(DeviceHold.each(result), lambda row: row.owner)
    return {one: [_held(row) for row in rows] for one, rows in held.items()}


def _series(tx: Connection, job_ids: Sequence[JobId]) -> dict[str, list[LastMetric]]:
    """Load the series of each job's lowest rank that reports, the oldest attempt first."""
    if not job_ids:
        return {}
    return _grouped(LastMetric.each(tx.execute(_SERIES, {"ids": job_ids})), lambda row: row.job_id)


def _starts(tx: Connection, job_ids: Sequence[JobId]) -> dict[str, AttemptStart]:
    """Load when and at which step the current attempts began, by job."""
    if not job_ids:
        return {}
    return {row.job_id: row for row in AttemptStart.each(tx.execute(_STARTS, {"ids": job_ids}))}


def _latest(series: Sequence[LastMetric]) -> dict[str, api.Number]:
    return {row.name: row.value for row in series if not tracked.is_printed(row.stream)}


def _progress(row: ShownJob, series: Sequence[LastMetric], start: AttemptStart | None) -> api.Progress | None:
    if row.step is None:
        return None
    source = _progress_source(row, series)
    partly = row.total_steps is None or row.step < row.total_steps
    if partly and source is api.ProgressSource.PRINTED and row.state == JobState.SUCCEEDED:
        return None  # `epoch 3/3` is printed before that epoch as after it: of what is done, a share of it would lie
    return api.Progress(
        source=source,
        step=row.step,
        total_steps=row.total_steps,
        eta_s=_eta(row, series, start),
    )


def _progress_source(row: ShownJob, series: Sequence[LastMetric]) -> api.ProgressSource:
    if not series or any(tracked.precedence(each.stream) == 0 for each in series):
        return api.ProgressSource.REPORTED
    printed = row.total_steps is not None and any(tracked.is_printed(each.stream) for each in series)
    return api.ProgressSource.PRINTED if printed else api.ProgressSource.TRACKER


def _eta(row: ShownJob, series: Sequence[LastMetric], start: AttemptStart | None) -> float | None:
    """Return the seconds to go as of the last report; not as of now, so the job's ETag stays true."""
    if row.state != JobState.RUNNING or start is None or start.started_us is None:
        return None
    if not series or not row.total_steps or row.step is None:
        return None
    done = row.step - (start.resumed_from_step or 0)
    elapsed_us = max(item.last_time_us for item in series) - start.started_us
    if done <= 0 or elapsed_us <= 0:
        return None
    return float(round(max(0, row.total_steps - row.step) * elapsed_us / done / 1e6, 1))


def attempts(tx: Connection, job_id: JobId) -> list[api.Attempt]:
    """Return a job's attempts, the first one first."""
    query = select(Attempt.__table__).where(Attempt.job_id == job_id).order_by(Attempt.number)
    devices = _by_owner(tx.execute(_HELD_BY_ATTEMPTS, {"job": job_id}))
    members, lost = _members(tx, job_id), _lost_records(tx, job_id)
    put_back = set(tx.scalars(put_back_attempts().where(Attempt.job_id == job_id)))
    return [
        _attempt(row, members[row.id], devices.get(row.id, []), lost.get(row.id, 0)).model_copy(
            update={"put_back": row.id in put_back}
        )
        for row in AttemptRecord.each(tx.execute(query))
    ]


def put_back_attempts() -> Select[AttemptId]:
    """Return the query for attempts that were put back; not those that ended by themselves before they were stopped."""
    over = or_(Attempt.number < Job.attempt, Attempt.state == AttemptState.PREEMPTED, Job.state == JobState.QUEUED)
    return select(Attempt.id).join(Job, Job.id == Attempt.job_id).where(Attempt.number <= Job.restarts, over)


def _lost_records(tx: Connection, job_id: JobId) -> dict[str, int]:
    """Count the metric records of each attempt that were not stored.

    Lines that could not be read are among the gaps between the others, unless the process did not number them.
    """
    more = case((MetricStream.lost > MetricStream.skipped, MetricStream.lost), else_=MetricStream.skipped)
    query = (
        select(MetricStream.attempt_id, func.sum(more))
        .join(Attempt, Attempt.id == MetricStream.attempt_id)
        .where(Attempt.job_id == job_id)
        .group_by(MetricStream.attempt_id)
    )
    return {row[0]: int(row[1]) for row in tx.execute(query)}


def _members(tx: Connection, job_id: JobId) -> dict[str, list[api.Member]]:
    ranks = _local_world_size(tx, job_id)
    query = (
        select(*ShownMember.columns(Member))
        .join(Attempt, Attempt.id == Member.attempt_id)
        .where(Attempt.job_id == job_id)
        .order_by(Member.node_rank)
    )
    found = _grouped(ShownMember.each(tx.execute(query)), lambda row: row.attempt_id)
    return {attempt: [_member(row, ranks) for row in rows] for attempt, rows in found.items()}


def _local_world_size(tx: Connection, job_id: JobId) -> int:
    job = SpecRecord.first(tx.execute(select(Job.spec).where(Job.id == job_id)))
    try:
        return job.spec.model().local_world_size if job else 1
    except ValueError:  # stored when other rules held
        return 1


def _member(row: ShownMember, ranks: int) -> api.Member:
    first = row.node_rank * ranks
    return api.Member(
        node=row.node,
        node_rank=row.node_rank,
        first_rank=first,
        last_rank=first + ranks - 1,
        ended_at=moment_or_none(row.ended_us),
        settled=row.settled,
    )


def _attempt(
    row: AttemptRecord, members: list[api.Member], devices: list[api.HeldDevice], lost_records: int
) -> api.Attempt:
    result = row.result
    return api.Attempt(
        id=row.id,
        number=row.number,
        state=row.state,
        node=members[0].node,
        members=members,
        devices=devices,
        created_at=moment(row.created_us),
        claimed_at=moment_or_none(row.claimed_us),
        started_at=moment_or_none(row.started_us),
        ended_at=moment_or_none(row.ended_us),
        resumed_from_step=row.resumed_from_step,
        exit_code=result.exit_code if result else None,
        signal=result.signal if result else None,
        error=outcome.error_of(result) if result and row.state in _WITH_ERROR else None,
        memory_peak=result.memory_peak if result else None,
        gpu_memory_peak=result.gpu_memory_peak if result else None,
        dropped_log_bytes=result.dropped_log_bytes if result else 0,
        dropped_records=max(result.dropped_records if result else 0, lost_records),
        settled=row.claimed_us is None or all(member.settled for member in members),
        carried_from=row.carried_from,
    )


def event(row: EventRecord) -> api.Event:
    """Present an event."""
    return api.Event(
        seq=row.seq,
        at=moment(row.at_us),
        kind=row.kind,
        state=row.state,
        attempt=row.attempt,
        actor=row.actor,
        message=row.message,
        data=row.data,
    )


def events(tx: Connection, job_id: JobId, after: int, limit: int) -> list[api.Event]:
    """Return the events of a job after a sequence number, the oldest first."""
    query = select(Event.__table__).where(Event.job_id == job_id, Event.seq > after).order_by(Event.seq).limit(limit)
    return [event(row) for row in EventRecord.each(tx.execute(query))]
