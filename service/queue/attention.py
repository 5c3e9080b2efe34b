"""Faults that need attention: the box's own troubles, devices that are held for nothing, and the caller's failures.

Nodes and devices concern everybody, as do runs that hang or leave their GPUs idle, whoever may read them. Of metrics
that are not finite and of jobs that failed, each user hears of their own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, and_, func, literal, select, union_all
from sqlalchemy.orm import aliased

from service.accounting.gpu_time import IDLE_BELOW
from service.db.chunks import chunks
from service.db.engine import Database
from service.db.models import Allocation, Attempt, Device, Job, MetricSeries, Sample, User
from service.db.records.nodes import DeviceRecord, NodeRecord
from service.db.records.record import Record
from service.db.special_values import SPECIAL_VALUES
from service.identity.callers import Caller
from service.identity.visibility import may_read, shown_name
from service.infra.times import moment
from service.nodes import listing
from torchyard.api import Attention, JobError
from torchyard.failures.tracebacks import raised_line
from torchyard.ids import AttemptId, JobId
from torchyard.quantities import format_size
from torchyard.states import AttemptState, JobState
from torchyard.wire import Finding

MINUTE_US = 60 * 1_000_000
#: GPUs are idle if they did nothing at each of so many moments, a minute apart.
IDLE_MINUTES = 10
#: Attempts on their nodes that one statement looks at: SQLite takes 500 queries in it.
PROBED = 500 // IDLE_MINUTES
#: Failures are told for so long, and so many of them.
FAILED_US, MAX_FAILED = 24 * 60 * MINUTE_US, 8


@dataclass(frozen=True, slots=True)
class _Run(Record):
    """A running attempt with its job."""

    id: AttemptId
    job_id: JobId
    number: int
    name: str
    user_id: str
    user: str
    project: str
    hung_us: int | None
    started_us: int | None


@dataclass(frozen=True, slots=True)
class _HeldGpu(Record):
    """A whole GPU that a running attempt holds."""

    attempt_id: AttemptId
    node: str
    index: int


@dataclass(frozen=True, slots=True)
class _Probe(Record):
    """The newest sample of an attempt on a node before a moment."""

    attempt_id: AttemptId
    node: str
    sampled: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Failed(Record):
    """A job that failed."""

    number: int
    name: str
    user: str
    ended_us: int
    error: JobError | None


def load(db: Database, caller: Caller, now: int, disk_floor: int) -> list[Attention]:
    """Return what needs attention, the box's troubles first; without names of jobs that the caller may not read."""
    with db.read() as tx:
        runs = _runs(tx)
        found = [item for node, devices in listing.with_devices(tx) for item in _node(node, devices, disk_floor)]
        found += _hung(runs, caller) + _idle(tx, runs, caller, now)
        found += _not_finite(tx, [run for run in runs if run.user_id == caller.user_id])
        return found + _failed(tx, caller, now)


def _node(node: NodeRecord, devices: Iterable[DeviceRecord], disk_floor: int) -> Iterator[Attention]:
    if node.unreachable:
        since = None if node.last_seen_us is None else moment(node.last_seen_us)
        yield Attention(kind="node-silent", node=node.name, message="is silent", since=since)
    floor = disk_floor if node.disk_floor is None else node.disk_floor
    if node.last_seen_us is not None and node.disk_free < floor:
        free, least = format_size(node.disk_free), format_size(floor)
        message = f"has {free} of disk free: no job starts there below {least}"
        yield Attention(kind="disk-low", node=node.name, message=message, params={"free": free, "least": least})
    for device in devices:
        if device.unusable is not None:
            what = "GPU" if device.kind == "gpu" else "CPU slot"
            message = f"{what} {device.index} is out of use: {device.unusable}"
            params = {"unit": device.kind, "index": device.index, "said": device.unusable, **_finding(device.finding)}
            yield Attention(kind="device-unusable", node=node.name, message=message, params=params)
    findings = {each.message: each for each in node.offender_findings or ()}
    for words in node.offenders:
        yield Attention(kind="offender", node=node.name, message=words, params=_finding(findings.get(words)))


def _finding(found: Finding | None) -> dict[str, Any]:
    """Return what a node's words are made of, as far as that is known."""
    return {} if found is None else {"finding": found.model_dump(mode="json")}


def _runs(tx: Connection) -> list[_Run]:
    of_job = [getattr(Job, name).label(name) for name in ("number", "name", "user_id", "project")]
    query = (
        select(*_Run.columns(Attempt, *of_job, User.name.label("user")))
        .join(Job, Job.id == Attempt.job_id)
        .join(User, User.id == Job.user_id)
        .where(Attempt.state == AttemptState.RUNNING)
        .order_by(Job.number)
    )
    return _Run.all(tx.execute(query))


def _of_run(run: _Run, caller: Caller, kind: Literal["hung", "idle", "nan"], message: str, **more: Any) -> Attention:
    name, readable = shown_name(caller, run, run.name), may_read(caller, run)
    return Attention(kind=kind, message=message, job=run.number, name=name, user=run.user, readable=readable, **more)


def _hung(runs: Iterable[_Run], caller: Caller) -> list[Attention]:
    hung = [(run, run.hung_us) for run in runs if run.hung_us is not None]
    return [_of_run(run, caller, "hung", "makes no step any more", since=moment(us)) for run, us in hung]


def _idle(tx: Connection, runs: Sequence[_Run], caller: Caller, now: int) -> list[Attention]:
    """Return the runs whose GPUs did nothing at any of the last minutes."""
    settled_us = now - IDLE_MINUTES * MINUTE_US
    old = {run.id: run for run in runs if run.started_us is not None and run.started_us < settled_us}
    held = _held_gpus(tx, list(old))
    busiest = _busiest(tx, held, now)
    idle = [old[attempt] for attempt, (probes, most) in busiest.items() if probes and most < IDLE_BELOW]
    words = f"has used no GPU for {IDLE_MINUTES} minutes"
    return [_of_run(run, caller, "idle", words, params={"minutes": IDLE_MINUTES}) for run in idle]


def _held_gpus(tx: Connection, attempts: Sequence[AttemptId]) -> list[_HeldGpu]:
    query = (
        select(*_HeldGpu.columns(Allocation))
        .join(Device, and_(Device.node == Allocation.node, Device.uuid == Allocation.uuid))
        .where(Allocation.live, Allocation.share.is_(None), Device.kind == "gpu", Allocation.attempt_id.in_(attempts))
        .order_by(Allocation.attempt_id)
    )
    return _HeldGpu.all(tx.execute(query)) if attempts else []


def _busiest(tx: Connection, held: Sequence[_HeldGpu], now: int) -> dict[AttemptId, tuple[bool, float]]:
    """Return for each attempt whether every moment was sampled, and the most that any of its GPUs did, in percent."""
    places = list(dict.fromkeys((gpu.attempt_id, gpu.node) for gpu in held))
    probes: defaultdict[tuple[AttemptId, str], list[dict[str, float]]] = defaultdict(list)
    for some in chunks(places, PROBED):
        for probe in _Probe.each(tx.execute(union_all(*_probes(some, now)))):
            probes[probe.attempt_id, probe.node].append(probe.sampled)
    found: dict[AttemptId, tuple[bool, float]] = {}
    for attempt, node in places:
        seen = probes[attempt, node]
        names = [f"gpu.{gpu.index}.utilization" for gpu in held if (gpu.attempt_id, gpu.node) == (attempt, node)]
        values = [sampled[name] for sampled in seen for name in names if name in sampled]
        whole = len(values) == IDLE_MINUTES * len(names)
        before, most = found.get(attempt, (True, 0.0))
        found[attempt] = (before and whole, max([most, *values]))
    return found


def _probes(places: Iterable[tuple[AttemptId, str]], now: int) -> Iterator[Any]:
    """Yield one look into the samples' index for each minute."""
    for attempt, node in places:
        for minute in range(IDLE_MINUTES):
            until = now - minute * MINUTE_US
            newest = (
                select(Sample.values.label("sampled"))
                .where(Sample.node == node, Sample.attempt_id == attempt)
                .where(Sample.time_us > until - MINUTE_US, Sample.time_us <= until)
                .order_by(Sample.time_us.desc())
                .limit(1)
                .subquery()
            )
            yield select(literal(attempt).label("attempt_id"), literal(node).label("node"), newest.c.sampled)


def _not_finite(tx: Connection, runs: Sequence[_Run]) -> list[Attention]:
    """Return the runs of which a metric is not finite by its newest value, one item each."""
    by_id = {run.id: run for run in runs}
    query = (
        select(MetricSeries.attempt_id, MetricSeries.name, MetricSeries.last_special)
        .where(MetricSeries.attempt_id.in_(list(by_id)), MetricSeries.last_special != 0)
        .order_by(MetricSeries.name.desc())
    )
    worst = {row.attempt_id: row for row in tx.execute(query)} if by_id else {}
    return [
        Attention(
            kind="nan",
            message=f"{row.name} is {SPECIAL_VALUES[row.last_special]}",
            params={"metric": row.name, "value": str(SPECIAL_VALUES[row.last_special])},
            job=by_id[attempt].number,
            name=by_id[attempt].name,
            user=by_id[attempt].user,
        )
        for attempt, row in worst.items()
    ]


def _failed(tx: Connection, caller: Caller, now: int) -> list[Attention]:
    """Return the caller's jobs that failed lately and were not run again, the newest first."""
    any_of, again = aliased(Job), aliased(Job)
    oldest = select(func.min(any_of.number)).where(*_failed_lately(any_of, caller, now)).scalar_subquery()
    # Found once for all of them: to look for those of each takes PostgreSQL ten times as long.
    reruns = select(again.rerun_of).where(
        again.user_id == caller.user_id, again.number > oldest, again.rerun_of.is_not(None)
    )
    query = (
        select(*_Failed.columns(Job, User.name.label("user")))
        .join(User, User.id == Job.user_id)
        .where(*_failed_lately(Job, caller, now), Job.id.not_in(reruns))
        .order_by(Job.number.desc())
        .limit(MAX_FAILED)
    )
    return [
        Attention(
            kind="failed",
            message=headline(each.error),
            params=_told(each.error),
            since=moment(each.ended_us),
            job=each.number,
            name=each.name,
            user=each.user,
        )
        for each in _Failed.each(tx.execute(query))
    ]


def _failed_lately(job: Any, caller: Caller, now: int) -> tuple[ColumnElement[bool], ...]:
    return job.user_id == caller.user_id, job.state == JobState.FAILED, job.ended_us > now - FAILED_US


def headline(error: JobError | None) -> str:
    """Return the exception's own line of a failure, or what the service says of it."""
    if error is None:
        return "failed"
    return raised_line(error.traceback or "") or error.message


def _told(error: JobError | None) -> dict[str, Any]:
    """Return what the service's own words of a failure are made of."""
    if error is None or raised_line(error.traceback or "") is not None:
        return {}
    return {"error": error.model_dump(mode="json", exclude={"traceback"})}
