"""The queue as people see it: places, reasons, and why a job is where it is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from service import notices
from service.db.engine import Database
from service.db.models import Dependency, Group, Job, User
from service.db.records.jobs import JobRecord
from service.db.records.record import Record
from service.estimation.forecasts import Estimator
from service.identity import unix_accounts
from service.identity.callers import Caller
from service.identity.visibility import may_read, shown_name
from service.infra.times import minute
from service.jobs import fit
from service.queue import job_status, titles, variants
from service.queue.snapshot import QueueSnapshot, queue_snapshot
from service.scheduler.explain import alternatives, forecast, reasons
from service.scheduler.explain.blockers import Blocker, DecisionReview, Obstacle
from service.scheduler.explain.forecast import Expected
from service.scheduler.explain.names import Awaited, Names, Title
from service.scheduler.model.jobs import IneligibleReason, Waiting
from service.scheduler_cache.load import Loader
from service.secrets import of_jobs
from torchyard.api import Page, QueueEntry, Reason, Why
from torchyard.ids import JobId
from torchyard.spec import Priority
from torchyard.states import JobState

_PRIORITIES = tuple(Priority)
#: Of so many jobs of a page it is told when they start; the later ones depend on too much that nobody knows.
MAX_FORECASTS = 32


@dataclass(frozen=True, slots=True)
class _AwaitedJob(Record):
    """A job that another one waits for, and its state."""

    needs: JobId
    state: JobState


def page(db: Database, loader: Loader, now: int, caller: Caller, start: int, limit: int) -> Page[QueueEntry]:
    """Return a page of the queue, from place `start` (from 0), without names of jobs that the caller may not read."""
    with queue_snapshot(db, loader, now) as (tx, seen):
        items = entries(tx, seen, caller, start, limit)
    more = start + limit < len(seen.queue)
    return Page[QueueEntry](items=items, next=str(start + limit) if more else None)


def entries(tx: Connection, seen: QueueSnapshot, caller: Caller, start: int, limit: int) -> list[QueueEntry]:
    """Return the queue from place `start` (from 0), each job with the strongest reason why it waits."""
    some = [seen.state.waiting[job] for job in seen.queue[start : start + limit]]
    if not some:
        return []
    found = _found(seen, some)
    rows = titles.load(tx, [waiting.job for waiting in some])
    # How long a pause lasts nobody knows.
    first = [waiting.job for waiting in some[:MAX_FORECASTS]] if start == 0 and not seen.state.paused else []
    expected = forecast.expected_starts(seen.state, first, seen.now, seen.policy, seen.queue)
    told = _strongest(seen, found, _names(tx, seen, found), expected)
    return [
        QueueEntry(
            position=number,
            job=waiting.job,
            number=waiting.number,
            name=shown_name(caller, rows[waiting.job], rows[waiting.job].name),
            readable=may_read(caller, rows[waiting.job]),
            user=rows[waiting.job].user,
            priority=_PRIORITIES[waiting.priority],
            gpus=waiting.gpus,
            held=waiting.ineligible is IneligibleReason.HELD,
            reason=told[id(found[waiting.job])].message,
            reason_code=told[id(found[waiting.job])].code,
            reason_params=told[id(found[waiting.job])].params,
            **expected_times(expected.get(waiting.job)),
        )
        for number, waiting in enumerate(some, start + 1)
    ]


def _found(seen: QueueSnapshot, some: Sequence[Waiting]) -> dict[JobId, list[Blocker]]:
    """Return what is in the way of these jobs; it is the same for all that are alike, and looked for once."""
    review = DecisionReview(seen.state, seen.now, seen.policy)
    known: dict[Any, list[Blocker]] = {}
    found = {}
    for job in some:
        own = job.job if review.moves(job.job) else None
        owner = job.user if job.resources.excluded_nodes else None  # their account is named
        needs = (job.resources, job.nodes, job.preemptible, job.pinned)
        alike = (own, owner, job.ineligible, *needs, *review.reached(job.job))
        if alike not in known:
            known[alike] = review.blockers(job.job)
        found[job.job] = known[alike]
    return found


def _strongest(
    seen: QueueSnapshot, found: dict[JobId, list[Blocker]], names: Names, expected: Mapping[JobId, Expected]
) -> dict[int, Reason]:
    """Return the strongest reason by the identity of the list of blockers.

    Many jobs have one list in common: the reason is told as it is for the first of them.
    """
    lists = {id(blockers): (job, blockers) for job, blockers in reversed(found.items())}
    return {
        key: reasons.reasons(seen.state, job, blockers, names, seen.now, _p50(expected.get(job)))[0]
        for key, (job, blockers) in lists.items()
    }


def why(db: Database, loader: Loader, estimator: Estimator, now: int, job_id: JobId, caller: Caller) -> Why:
    """Return the reasons why the job is where it is."""
    with queue_snapshot(db, loader, now, job_id) as (tx, seen):
        job = JobRecord.one(tx.execute(select(Job.__table__).where(Job.id == job_id)))
        if job.state is JobState.QUEUED:
            return _why_waiting(tx, estimator, job, seen, caller)
        return job_status.why(tx, job, seen.state.running.get(job.id), seen.state, seen.now)


def _why_waiting(tx: Connection, estimator: Estimator, job: JobRecord, seen: QueueSnapshot, caller: Caller) -> Why:
    waiting = seen.state.waiting[job.id]
    review = DecisionReview(seen.state, seen.now, seen.policy)
    found = review.blockers(job.id)
    names = _names(tx, seen, {job.id: found}, job)
    place = seen.order.places[job.id]
    paused = bool(seen.state.paused)
    expected = (
        Expected(None, None)
        if paused
        else forecast.expected_start(seen.state, job.id, seen.now, seen.policy, seen.queue)
    )
    told = reasons.reasons(seen.state, job.id, found, names, seen.now, expected.p50_us)
    variant = variants.JobVariants(tx, estimator, seen, job, caller)
    other = (
        []
        if paused or review.moves(job.id)
        else alternatives.find(seen.state, job.id, seen.now, seen.policy, variant.build, expected)
    )
    return Why(
        state=JobState.QUEUED,
        summary=f"Job {job.number} waits at place {place}: {told[0].message}.",
        reasons=told + job_status.before(tx, job) + _advice(tx, waiting, seen),
        position=place,
        alternatives=[variants.presented(job.number, each) for each in other],
        **expected_times(expected),
    )


def _p50(expected: Expected | None) -> int | None:
    return None if expected is None else expected.p50_us


def strongest_reason(tx: Connection, seen: QueueSnapshot, job: JobId, expected: Expected) -> Reason:
    """Return why a job of the queue does not start, or that it does; it need not be stored."""
    found = {job: DecisionReview(seen.state, seen.now, seen.policy).blockers(job)}
    told = reasons.reasons(seen.state, job, found[job], _names(tx, seen, found), seen.now, expected.p50_us)
    return told[0]


def expected_times(expected: Expected | None) -> dict[str, datetime | None]:
    """Return the fields of an answer that say when a job starts."""
    p50, p90 = (None, None) if expected is None else (expected.p50_us, expected.p90_us)
    return {
        "expected_start_at": None if p50 is None else minute(p50),
        "expected_start_p90_at": None if p90 is None else minute(p90),
    }


def _advice(tx: Connection, waiting: Waiting, seen: QueueSnapshot) -> list[Reason]:
    return fit.advice(tx, waiting.resources, list(seen.state.nodes.values()), waiting.nodes)


def _names(
    tx: Connection, seen: QueueSnapshot, found: dict[JobId, list[Blocker]], job: JobRecord | None = None
) -> Names:
    """Return the names that reasons may need; for a single job also those that it waits for."""
    # Many jobs have the same one, of which the first is told about (`_strongest`).
    lists = {id(blockers): (one, blockers) for one, blockers in reversed(found.items())}
    jobs = [name for one, blockers in lists.values() for name in reasons.mentioned(seen.state, one, blockers)]
    users = [blocker.reached.whose for blockers in found.values() for blocker in blockers if blocker.reached]
    awaited = _awaited(tx, job) if job is not None else []
    rows = titles.load(tx, [*jobs, *(row.needs for row in awaited)])
    named = {name: Title(number=row.number, user=row.user) for name, row in rows.items()}
    after = None if job is None else job.spec.after
    return Names(
        jobs=named,
        users=_users(tx, users),
        awaited=[Awaited(job=row.needs, title=named[row.needs], state=row.state) for row in awaited],
        need=f"{after.when} of {after.need}" if after else "",
        paused=_paused(tx, job) if job is not None else "",
        pause=notices.pause_params(tx) if seen.state.paused else {},
        missing=_missing(tx, job) if job is not None else None,
        accounts={
            (one, node): reason
            for one, blockers in lists.values()
            if any(blocker.obstacle is Obstacle.ACCOUNT for blocker in blockers)
            for node, reason in unix_accounts.reasons(tx, seen.state.waiting[one].user).items()
        },
    )


def _awaited(tx: Connection, job: JobRecord) -> list[_AwaitedJob]:
    """Return the jobs that this one waits for and that are not over."""
    if not job.blocked:
        return []
    query = (
        select(Dependency.needs, Job.state)
        .join(Job, Job.id == Dependency.needs)
        .where(Dependency.job_id == job.id, Job.ended_us.is_(None))
        .order_by(Job.number)
    )
    return _AwaitedJob.all(tx.execute(query.limit(100)))


def _paused(tx: Connection, job: JobRecord) -> str:
    if job.group_id is None:
        return ""
    return tx.scalar(select(Group.paused).where(Group.id == job.group_id)) or ""


def _missing(tx: Connection, job: JobRecord) -> Reason | None:
    """Return the reason about secrets that the job names and that do not exist; None if it has all."""
    named = of_jobs.NamedSecrets(user_id=job.user_id, project=job.project, names=job.spec.secrets)
    lacks = of_jobs.missing(tx, {job.id: named}) if named.names else {}
    absent = next(iter(lacks.values()), None)
    if absent is None:
        return None
    params = {"names": list(absent), "project": job.project}
    return Reason(code="secret", message=of_jobs.absent(absent, job.project), params=params)


def _users(tx: Connection, users: Iterable[str]) -> dict[str, str]:
    wanted = sorted(set(users))
    rows = tx.execute(select(User.id, User.name).where(User.id.in_(wanted))) if wanted else ()
    return {row.id: row.name for row in rows}
