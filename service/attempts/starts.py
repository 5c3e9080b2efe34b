"""The start of an attempt, hop by hop: from the request to the first report of the training.

What happens on a node is told by a clock since boot there (`torchyard.wire.NodeStart`); the rest are times of the
service. The node's wall clock is set right by its claim: the service had it between the node's asking and its answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, Select, Table, bindparam, select, update

from service.db.models import Attempt, Job, MetricPoint, MetricSeries
from service.db.records.attempts import StoredStart
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.db.unit_of_work import unit_of
from service.infra.times import moment
from torchyard import api, wire
from torchyard.api import StartStageName as Name
from torchyard.ids import AttemptId, JobId
from torchyard.wire import StartMark

#: What ends with each mark of the node.
_ENDS: dict[StartMark, Name] = {
    StartMark.CLAIMING: Name.LAUNCH,
    StartMark.CLAIMED: Name.CLAIM,
    StartMark.PREPARED: Name.PREPARATION,
    StartMark.SHIM: Name.SHIM,
    StartMark.STARTED: Name.FORK,
    StartMark.AGENT: Name.AGENT,
    StartMark.AGENT_IMPORTED: Name.AGENT_IMPORTS,
    StartMark.RANK: Name.RANK,
    StartMark.PROGRAM: Name.PROGRAM,
    StartMark.TORCH: Name.IMPORTS,
    StartMark.JOINED: Name.RENDEZVOUS,
    StartMark.STEPPED: Name.FIRST_STEP,
}
_START: Select[Any] = select(Attempt.start).where(Attempt.id == bindparam("attempt"))
_LOCK_START: Select[Any] = _START.with_for_update()
_SET_START = update(cast("Table", Attempt.__table__)).where(Attempt.id == bindparam("attempt"))


@dataclass(frozen=True, slots=True)
class AttemptMoments(Record):
    """An attempt's and its job's times that a start is made of (µs)."""

    id: AttemptId
    number: int
    received_us: int | None
    submitted_us: int
    created_us: int
    claimed_us: int | None
    start: StoredStart | None
    spec: StoredSpec


@dataclass(frozen=True, kw_only=True)
class ClockSkew:
    """The lead of a node's wall clock over the service's, and its uncertainty, both in µs."""

    ahead_us: int
    error_us: int


def skew(node: wire.NodeStart, claimed_us: int | None) -> ClockSkew | None:
    """Return the node's skew by the moment at which the service had its claim; None where that is not known.

    A difference that the claim's own way explains is none.
    """
    asked, answered = node.marks.get(StartMark.CLAIMING), node.marks.get(StartMark.CLAIMED)
    if claimed_us is None or asked is None or answered is None:
        return None
    low, high = node.heard_us + asked - claimed_us, node.heard_us + answered - claimed_us
    ahead = 0 if low <= 0 <= high else (low + high) // 2
    return ClockSkew(ahead_us=ahead, error_us=(high - low + 1) // 2)


def timing(found: AttemptMoments, reported_us: int | None) -> api.StartTiming:
    """Return the stages of a start, each with its beginning and length; those that are not known are left out.

    `reported_us` is the time of the first point that the attempt has reported, by its node's clock.
    """
    stored = found.start or StoredStart()
    node = stored.node
    clock = None if node is None or found.spec.nodes > 1 else skew(node, found.claimed_us)
    ahead = clock.ahead_us if clock else 0
    ends = [*_service_ends(found, stored), *_node_ends(node, reported_us, ahead)]
    begun = ends[0][1]
    return api.StartTiming(
        attempt=found.number,
        begun_at=moment(begun),
        stages=_stages(ends[1:], begun),
        warm=node.warm if node else None,
        cold_reason=node.cold_reason if node else None,
        cold_code=node.cold_code if node else None,
        cold_params={"said": node.cold_said} if node and node.cold_said is not None else {},
        preloaded=node.preloaded if node else None,
        clock_skew_ms=None if clock is None else clock.ahead_us / 1000,
        clock_skew_error_ms=None if clock is None else clock.error_us / 1000,
    )


def _service_ends(found: AttemptMoments, stored: StoredStart) -> list[tuple[Name, int]]:
    """The moments on the service; the first is where it begins: with the request, or for a later attempt with the pass
    of the scheduler.
    """
    ends: list[tuple[Name, int | None]] = []
    if found.number == 1:
        ends = [(Name.REQUEST, found.received_us), (Name.REQUEST, found.submitted_us), (Name.QUEUE, stored.looked_us)]
    else:
        ends = [(Name.SCHEDULING, stored.looked_us)]
    ends += [(Name.SCHEDULING, found.created_us), (Name.PUBLISHING, stored.node.published_us if stored.node else None)]
    return [(name, at) for name, at in ends if at is not None]


def _node_ends(node: wire.NodeStart | None, reported_us: int | None, ahead_us: int) -> list[tuple[Name, int]]:
    """The moments on the node, in the order in which they came: a script may report before its first step."""
    ends = [] if reported_us is None else [(Name.FIRST_REPORT, reported_us)]
    if node is not None:
        marks = [(_ENDS[mark], node.heard_us + node.marks[mark]) for mark in _ENDS if mark in node.marks]
        ends = [(Name.DELIVERY, node.heard_us), *marks, *ends]
    return sorted([(name, at - ahead_us) for name, at in ends], key=lambda end: end[1])


def _stages(ends: Sequence[tuple[Name, int]], begun: int) -> list[api.StartStage]:
    stages, last = [], begun
    for name, at in ends:
        end = max(at, last)
        stages.append(api.StartStage(name=name, at_ms=(last - begun) / 1000, ms=(end - last) / 1000))
        last = end
    return stages


def of_job(tx: Connection, job_id: JobId) -> list[api.StartTiming]:
    """Return the starts of a job's attempts, the first one first."""
    query = (
        select(
            *AttemptMoments.columns(
                Attempt,
                Job.received_us.label("received_us"),
                Job.created_us.label("submitted_us"),
                Job.spec.label("spec"),
            )
        )
        .join(Job, Job.id == Attempt.job_id)
        .where(Attempt.job_id == job_id)
        .order_by(Attempt.number)
    )
    found = AttemptMoments.all(tx.execute(query))
    return [timing(each, _first_report(tx, each.id)) for each in found]


def _first_report(tx: Connection, attempt_id: AttemptId) -> int | None:
    first = (
        select(MetricPoint.time_us)
        .where(MetricPoint.series_id == MetricSeries.id)
        .order_by(MetricPoint.seq)
        .limit(1)
        .scalar_subquery()
    )
    times = tx.scalars(select(first).where(MetricSeries.attempt_id == attempt_id))
    return min((at for at in times if at is not None), default=None)


def take(tx: Connection, attempt_id: AttemptId, node: wire.NodeStart | None) -> None:
    """Store what a node tells of a start, in place of what it told before."""
    if node is None:
        return
    stored = StoredStart.model_validate(tx.scalar(_START, {"attempt": attempt_id}) or {})
    told = stored.model_copy(update={"node": node}).model_dump(mode="json", exclude_none=True)
    tx.execute(_SET_START, {"attempt": attempt_id, "start": told})
    if not stored.traced:
        unit_of(tx).start(attempt_id)


def claim_trace(tx: Connection, attempt_id: AttemptId) -> bool:
    """Mark a start as traced; False if it already is."""
    stored = StoredStart.model_validate(tx.scalar(_LOCK_START, {"attempt": attempt_id}) or {})
    if stored.traced:
        return False
    marked = stored.model_copy(update={"traced": True}).model_dump(mode="json", exclude_none=True)
    tx.execute(_SET_START, {"attempt": attempt_id, "start": marked})
    return True
