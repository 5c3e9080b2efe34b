"""GPU time as it is charged: at the end of each attempt, to its user and project, by day and kind of use.

GPU time of running attempts is added to every report, as useful so far. Attempts that nobody claimed are charged to
nobody: nothing of theirs ran.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlalchemy import Connection, Select, Table, and_, bindparam, exists, func, or_, select, update

from service.accounting import accounts, gpu_time, occupancy
from service.accounting.gpu_time import AttemptTimeline, DeviceOccupancy, Split, UsageKind, WorkOutcome
from service.accounting.policy_settings import current_policy
from service.db import upsert
from service.db.models import Attempt, Checkpoint, Job, Member, Node, OwnerUsage, Usage, User, WastedUsage
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from torchyard.ids import AttemptId
from torchyard.states import ATTEMPT_FINAL, AttemptState, JobState
from torchyard.wire import Result

#: Samples that are read of an attempt that ends, of one that runs, and of all that run: long runs are seen coarsely.
SAMPLES, SAMPLES_RUNNING, SAMPLES_OF_ALL = 500, 100, 10_000

#: A node that has not been heard for so long is unreachable.
SILENCE_US = 60 * 1_000_000
#: A node claims what it is given within this time, and the answer to its result comes within that.
CLAIM_US, ANSWER_US = 120 * 1_000_000, 2 * 1_000_000

_OUTCOMES = {JobState.QUEUED: WorkOutcome.CONTINUED, JobState.FAILED: WorkOutcome.FAILED}
#: The job has a checkpoint, or had one.
SAVES = exists().where(Checkpoint.job_id == Job.id).label("saves")
_HOLDING = [state for state in AttemptState if state not in ATTEMPT_FINAL]


@dataclass(frozen=True, slots=True)
class _EndedAttempt(Record):
    """An attempt that has ended, and whose it is."""

    id: AttemptId
    created_us: int
    claimed_us: int | None
    started_us: int | None
    ended_us: int | None
    result: Result | None
    job_number: int
    user_id: str
    project: str
    spec: StoredSpec
    saves: bool


@dataclass(frozen=True, slots=True)
class _MemberResult(Record):
    """Result of an attempt's member, by its node."""

    node: str
    result: Result | None


@dataclass(frozen=True, slots=True)
class RunningAttempt(Record):
    """An attempt that holds devices, and whose it is."""

    id: AttemptId
    created_us: int
    claimed_us: int | None
    started_us: int | None
    #: First start of the job, by whichever attempt.
    first_us: int | None
    number: int
    user_id: str
    user: str
    project: str


@dataclass(frozen=True, kw_only=True)
class RunningUsage:
    """GPU time of one attempt that still runs."""

    attempt: RunningAttempt
    split: Split


@dataclass(frozen=True, slots=True)
class _NodeClock(Record):
    """Device times in microseconds, by attempt, that a node had measured when it was last heard."""

    name: str
    held_us: Mapping[str, int]
    last_seen_us: int | None
    unreachable: bool


def charge(
    tx: Connection, attempt_id: AttemptId, became: JobState, now: int, *, first_us: int | None, to_share: bool = True
) -> None:
    """Charge an attempt that has just ended; to be called once, in its transaction, after its devices are free.

    `became` is the job's new state, `first_us` its first start before the attempt ended, if it had one. Without
    `to_share` its time is reported, but counts neither for the share of its user and project nor for their quotas.
    """
    attempt = _ended(tx, attempt_id)
    outcome = _OUTCOMES.get(became, WorkOutcome.KEPT)
    held = _by_node_clock(tx, attempt, occupancy.load(tx, [attempt.id], now, SAMPLES)[attempt.id])
    timeline = AttemptTimeline(
        outcome=outcome,
        started_us=_within(attempt, held),
        restart=_is_restart(first_us, attempt.created_us),
        saved_us=_saved_us(tx, attempt.id) if outcome is WorkOutcome.CONTINUED else None,
    )
    split = gpu_time.split(held, timeline)
    if not split:
        return
    _store(tx, attempt, split)
    if not to_share:
        return
    half_life, gpu_s = current_policy(tx).half_life, split.total() / 1e6
    # One order for all writers: no deadlock.
    accounts.charge(tx, ("project", attempt.project), gpu_s, now, half_life)
    accounts.charge(tx, ("user", attempt.user_id), gpu_s, now, half_life)


_ENDED: Select[Any] = (
    select(Attempt.__table__, Job.number.label("job_number"), Job.user_id, Job.project, Job.spec, SAVES)
    .join(Job, Job.id == Attempt.job_id)
    .where(Attempt.id == bindparam("attempt"))
)
_RESULTS = select(Member.node, Member.result).where(Member.attempt_id == bindparam("attempt"))


def _ended(tx: Connection, attempt_id: AttemptId) -> _EndedAttempt:
    return _EndedAttempt.one(tx.execute(_ENDED, {"attempt": attempt_id}))


def _by_node_clock(tx: Connection, attempt: _EndedAttempt, held: Sequence[DeviceOccupancy]) -> list[DeviceOccupancy]:
    """Return the devices, held for as long as their nodes measured, whatever was done to a clock meanwhile."""
    members = _MemberResult.each(tx.execute(_RESULTS, {"attempt": attempt.id}))
    results = {each.node: each.result or attempt.result for each in members}
    measured = {node: None if result is None else result.held_us for node, result in results.items()}
    claimed_us = min(max(0, (attempt.claimed_us or 0) - attempt.created_us), CLAIM_US)
    return [
        each
        if (held_us := measured.get(each.node)) is None
        else replace(
            each, until_us=gpu_time.release_time(each.since_us, each.until_us, max(0, held_us), claimed_us + ANSWER_US)
        )
        for each in held
    ]


def _within(attempt: _EndedAttempt, held: Sequence[DeviceOccupancy]) -> int | None:
    """Return the start of the attempt, set right so that it lies in the time that it held its devices."""
    if attempt.started_us is None or not held:
        return None
    ran_us = max(0, (attempt.ended_us or attempt.started_us) - attempt.started_us)
    latest = max(each.until_us for each in held) - ran_us
    return max(min(attempt.started_us, latest), min(each.since_us for each in held))


_HOLDERS = select(Attempt.id).where(Attempt.state.in_(_HOLDING))
_RUNNING = (
    select(
        Attempt.id,
        Attempt.started_us,
        Attempt.created_us,
        Attempt.claimed_us,
        Job.started_us.label("first_us"),
        Job.number,
        Job.user_id,
        Job.project,
        User.name.label("user"),
    )
    .join(Job, Job.id == Attempt.job_id)
    .join(User, User.id == Job.user_id)
    .where(Attempt.id.in_(bindparam("attempts", expanding=True)))
)
_CLOCKS = select(Node.name, Node.held_us, Node.last_seen_us, Node.unreachable).where(Node.held_us.is_not(None))


def running(tx: Connection, now: int, *, idle: bool = True) -> list[RunningUsage]:
    """Return the GPU time of what holds devices now.

    Without `idle`, all of it counts as used, which costs less to find out.
    """
    # First those few alone: joined, the database may take the table with the fewest rows for the start.
    held_by = list(tx.scalars(_HOLDERS))
    attempts = RunningAttempt.all(tx.execute(_RUNNING, {"attempts": held_by})) if held_by else []
    samples = min(SAMPLES_RUNNING, 1 + SAMPLES_OF_ALL // max(1, len(attempts))) if idle else 0
    held, clocks = occupancy.load(tx, [each.id for each in attempts], now, samples), _clocks(tx)
    return [
        RunningUsage(attempt=each, split=gpu_time.split(_measured(each, held[each.id], clocks, now), _so_far(each)))
        for each in attempts
        if held[each.id]
    ]


def _clocks(tx: Connection) -> dict[str, _NodeClock]:
    """Return the device times that nodes had measured when they were last heard, by node."""
    return {clock.name: clock for clock in _NodeClock.each(tx.execute(_CLOCKS))}


def _measured(
    attempt: RunningAttempt, held: Sequence[DeviceOccupancy], clocks: Mapping[str, _NodeClock], now: int
) -> list[DeviceOccupancy]:
    """Return the devices, held for as long as their nodes have measured so far, else by the service's clock."""
    return [replace(each, until_us=_until(attempt, each, clocks.get(each.node), now)) for each in held]


def _until(attempt: RunningAttempt, held: DeviceOccupancy, clock: _NodeClock | None, now: int) -> int:
    measured = None if clock is None else clock.held_us.get(attempt.id)
    if clock is None or measured is None or held.until_us != now:
        return held.until_us
    since_heard = max(0, now - (clock.last_seen_us or now))
    if not clock.unreachable:
        since_heard = min(since_heard, SILENCE_US)
    claimed_us = min(max(0, (attempt.claimed_us or 0) - attempt.created_us), CLAIM_US)
    return held.since_us + claimed_us + max(0, int(measured)) + since_heard


def _so_far(attempt: RunningAttempt) -> AttemptTimeline:
    restart = _is_restart(attempt.first_us, attempt.created_us)
    return AttemptTimeline(outcome=WorkOutcome.KEPT, started_us=attempt.started_us, restart=restart)


def _is_restart(first_us: int | None, created_us: int) -> bool:
    return first_us is not None and first_us < created_us


_SET_GPU_TIME = update(cast("Table", Attempt.__table__)).where(Attempt.id == bindparam("attempt"))


def add(tx: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows of `Usage` to those that there are, and to the sums of their users and projects."""
    tx.execute(_add_usage(tx), rows)
    tx.execute(_add_owner_usage(tx), list(_sums(rows)))


def _sums(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the sums, those of projects first: one order for all writers, as in `charge`."""
    for owner_kind, column in (("project", "project"), ("user", "user_id")):
        for row in rows:
            of_owner = {"owner_kind": owner_kind, "day": row["day"], "owner": row[column], "kind": row["kind"]}
            yield {**of_owner, "gpu_us": row["gpu_us"], "stoppable_us": row["stoppable_us"]}


@upsert.made_once
def _add_usage(into: upsert.Into) -> upsert.Insert:
    return _adding(into, Usage, ("gpu_us", "stoppable_us"), ["day", "user_id", "project", "kind"])


@upsert.made_once
def _add_owner_usage(into: upsert.Into) -> upsert.Insert:
    return _adding(into, OwnerUsage, ("gpu_us", "stoppable_us"), ["owner_kind", "day", "owner", "kind"])


@upsert.made_once
def _add_wasted(into: upsert.Into) -> upsert.Insert:
    return _adding(into, WastedUsage, ("gpu_us",), ["day", "kind", "number"])


def _adding(into: upsert.Into, model: Any, columns: Sequence[str], key: Sequence[str]) -> upsert.Insert:
    """Return an insert whose columns are added to those of the row that has the key already."""
    insert = into(model)
    sums = {column: getattr(model, column) + insert.excluded[column] for column in columns}
    return insert.on_conflict_do_update(index_elements=key, set_=sums)


def _store(tx: Connection, attempt: _EndedAttempt, split: Split) -> None:
    days: defaultdict[str, dict[str, int]] = defaultdict(dict)
    rows, stoppable = [], attempt.spec.stoppable(saves=attempt.saves)
    for (day, kind), gpu_us in sorted(split.items()):
        days[str(day)][kind] = gpu_us
        times = {"gpu_us": gpu_us, "stoppable_us": gpu_us if stoppable else 0}
        rows.append({"day": day, "user_id": attempt.user_id, "project": attempt.project, "kind": kind, **times})
    add(tx, rows)
    tx.execute(_SET_GPU_TIME, {"attempt": attempt.id, "gpu_time": dict(days)})
    _store_wasted(tx, attempt, split)


def _store_wasted(tx: Connection, attempt: _EndedAttempt, split: Split) -> None:
    of_job = {"number": attempt.job_number, "user_id": attempt.user_id}
    rows = [
        {"day": day, "kind": kind, **of_job, "gpu_us": gpu_us}
        for (day, kind), gpu_us in sorted(split.items())
        if kind is not UsageKind.USEFUL and gpu_us
    ]
    if rows:
        tx.execute(_add_wasted(tx), rows)


def read_split(stored: Mapping[str, Mapping[str, int]]) -> Split:
    """Read `Attempt.gpu_time` back as it was charged."""
    return Counter({(int(day), UsageKind(kind)): us for day, kinds in stored.items() for kind, us in kinds.items()})


_KEPT = exists().where(Member.attempt_id == bindparam("attempt"), ~Member.settled)
_SAVED_US = select(func.max(Checkpoint.created_us)).where(
    Checkpoint.attempt_id == bindparam("attempt"),
    or_(Checkpoint.state == "stored", and_(Checkpoint.state == "committed", _KEPT)),
)


def _saved_us(tx: Connection, attempt_id: AttemptId) -> int | None:
    """Return the time of the newest checkpoint that another attempt can resume from.

    It is in the store, or its node keeps it.
    """
    return tx.scalar(_SAVED_US, {"attempt": attempt_id})
