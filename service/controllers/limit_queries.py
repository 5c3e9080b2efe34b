"""Queries for jobs and runs that have limits, and for what they have reported."""

from dataclasses import dataclass

from sqlalchemy import Connection, Double, and_, bindparam, case, func, select

from service.attempts import tracked
from service.controllers import limit_rules
from service.db.models import Allocation, Attempt, Device, Job, Member, MetricPoint, MetricSeries, Sample
from service.db.records.record import Record
from torchyard.ids import AttemptId, JobId
from torchyard.spec import HangPolicy
from torchyard.states import AttemptState, JobState, StopReason


@dataclass(frozen=True, slots=True)
class StartLimit(Record):
    """A job with a `start_limit`, in seconds, and whether it counts now."""

    id: JobId
    created_us: int
    eligible_us: int
    waits: bool
    limit: float


@dataclass(frozen=True, slots=True)
class ReportingRun(Record):
    """A running attempt that has reported a step, with what its job says of hanging."""

    id: AttemptId
    job_id: JobId
    hung_us: int | None
    dump_serial: int
    stop: StopReason | None
    step: int | None
    total_steps: int | None
    hang: HangPolicy | None
    newest_us: int
    """When it reported last, by its node's clock."""

    @property
    def policy(self) -> HangPolicy:
        """Rule for when it counts as hanging, and what follows."""
        return self.hang or HangPolicy()

    @property
    def through(self) -> bool:
        """True if it has made its last step; steps may be counted from 0."""
        return self.total_steps is not None and self.step is not None and self.step + 1 >= self.total_steps


@dataclass(frozen=True, slots=True)
class IdleLimit(Record):
    """A running attempt whose devices may do nothing for so many seconds."""

    id: AttemptId
    job_id: JobId
    limit: float
    own: bool
    """The job says so itself; else it is the installation's limit, which is of GPUs alone."""


@dataclass(frozen=True, slots=True)
class DeviceSample(Record):
    """A sample of what an attempt's member uses, by name of the measure."""

    time_us: int
    values: dict[str, float]


_QUEUED = and_(Job.state == JobState.QUEUED, Job.started_us.is_(None), ~Job.held, ~Job.blocked)
_START_LIMIT = Job.spec["start_limit"].as_float()
_WAITING = select(
    Job.id,
    Job.created_us,
    Job.eligible_us,
    _QUEUED.label("waits"),
    _START_LIMIT.label("limit"),
).where(_START_LIMIT > 0)
_QUEUED_LIMITS, _CHANGED_LIMITS = _WAITING.where(_QUEUED), _WAITING.where(Job.changed_us >= bindparam("since_us"))
_OF_RUN = (Attempt.id, Attempt.job_id, Attempt.hung_us, Attempt.dump_serial, Job.stop, Job.step, Job.total_steps)
_RUNNING = (
    select(*_OF_RUN, Job.spec["hang"].label("hang"), func.max(MetricSeries.last_time_us).label("newest_us"))
    .join(Job, Job.id == Attempt.job_id)
    .join(MetricSeries, MetricSeries.attempt_id == Attempt.id)
    .where(Attempt.state == AttemptState.RUNNING, MetricSeries.last_time_us.is_not(None))
    .group_by(Attempt.id, Job.id)
    .having(func.max(case((tracked.REPORTED, 1), else_=0)) == 1)
)
_LIMIT = Job.spec["idle_limit"].as_float()
_ANY_LIMIT = func.coalesce(_LIMIT, bindparam("default", type_=Double()))
_LIMITED = (
    select(Attempt.id, Attempt.job_id, _ANY_LIMIT.label("limit"), _LIMIT.is_not(None).label("own"))
    .join(Job, Job.id == Attempt.job_id)
    .where(Attempt.state == AttemptState.RUNNING, Job.stop.is_(None), _ANY_LIMIT > 0)
)
_GPUS = (
    select(func.count())
    .select_from(Allocation)
    .join(Device, (Device.node == Allocation.node) & (Device.uuid == Allocation.uuid))
    .where(Allocation.attempt_id == bindparam("attempt"), Device.kind == "gpu")
)


def start_limits(tx: Connection, since_us: int | None) -> list[StartLimit]:
    """Return the jobs with a `start_limit` that were changed since a time; None: all of them that wait."""
    found = tx.execute(_QUEUED_LIMITS) if since_us is None else tx.execute(_CHANGED_LIMITS, {"since_us": since_us})
    return StartLimit.all(found)


def reporting(tx: Connection) -> list[ReportingRun]:
    """Return the running attempts that have reported a step themselves."""
    return ReportingRun.all(tx.execute(_RUNNING))


def idle_limits(tx: Connection, default: float | None) -> list[IdleLimit]:
    """Return the running attempts whose jobs have an `idle_limit`; with a default, in seconds, all that run."""
    return IdleLimit.all(tx.execute(_LIMITED, {"default": default}))


def has_gpus(tx: Connection, attempt_id: AttemptId) -> bool:
    """Tell if the attempt holds any GPU, not CPU slots alone."""
    return bool(tx.scalar(_GPUS, {"attempt": attempt_id}))


def nodes(tx: Connection, attempt_id: AttemptId) -> list[str]:
    """Return the nodes on which the attempt has not ended."""
    return list(tx.scalars(select(Member.node).where(Member.attempt_id == attempt_id, Member.ended_us.is_(None))))


def reports(tx: Connection, attempt_id: AttemptId) -> list[tuple[int, int]]:
    """Return steps and times of the series that was reported last, the newest `limit_rules.STEPS` of them, in order."""
    series = (
        select(MetricSeries.id)
        .where(MetricSeries.attempt_id == attempt_id, MetricSeries.last_time_us.is_not(None), tracked.REPORTED)
        .order_by(MetricSeries.last_time_us.desc(), MetricSeries.id)
        .limit(1)
        .scalar_subquery()
    )
    query = (
        select(MetricPoint.step, MetricPoint.time_us)
        .where(MetricPoint.series_id == series)
        .order_by(MetricPoint.seq.desc())
        .limit(limit_rules.STEPS + 1)
    )
    return [(row.step, row.time_us) for row in reversed(tx.execute(query).all())]


def samples(tx: Connection, attempt_id: AttemptId, node: str, after_us: int | None) -> list[DeviceSample]:
    """Return the samples of an attempt's member on a node since one; the newest alone where none was seen."""
    of_member = (Sample.attempt_id == attempt_id, Sample.node == node)
    query = select(Sample.time_us, Sample.values).where(*of_member)
    if after_us is None:
        return DeviceSample.all(tx.execute(query.order_by(Sample.time_us.desc()).limit(1)))
    return DeviceSample.all(tx.execute(query.where(Sample.time_us > after_us).order_by(Sample.time_us)))
