"""The queue as people see it: places, reasons, and why a job is where it is."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from service.accounting.policy_settings import current_policy
from service.context import Context
from service.db.models import Dependency, Group, Job, User
from service.identity import unix_accounts
from service.identity.callers import Caller
from service.infra.times import minute
from service.jobs import fit
from service.queue import job_status, variants
from service.scheduler.explain import alternatives, forecast, reasons
from service.scheduler.explain.blockers import Blocker, DecisionReview, Obstacle
from service.scheduler.explain.forecast import Expected
from service.scheduler.model.jobs import IneligibleReason, Waiting
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.order import order
from torchyard.api import Page, QueueEntry, Reason, Why
from torchyard.spec import Priority
from torchyard.spec.policy import Policy
from torchyard.states import JobState

_PRIORITIES = tuple(Priority)
#: Of so many jobs of a page it is told when they start; the later ones depend on too much that nobody knows.
MAX_FORECASTS = 32


@dataclass(frozen=True, kw_only=True)
class QueueSnapshot:
    """What the policy knows now, and the order of the queue."""

    state: SchedulerState
    policy: Policy
    queue: Sequence[str]
    now: int


@contextmanager
def queue_snapshot(ctx: Context, asked: str | None = None) -> Iterator[tuple[Connection, QueueSnapshot]]:
    """Queue and boxes, with a transaction that shows the same moment; the job that is `asked` about as it is now."""
    now = ctx.now_us()
    with ctx.loader.snapshot(ctx.db, now, asked) as (tx, state):
        policy = current_policy(tx)
        queue = order(state, now, policy) if state.waiting else ()
        yield tx, QueueSnapshot(state=state, policy=policy, queue=queue, now=now)


def page(ctx: Context, start: int, limit: int) -> Page[QueueEntry]:
    """Return a page of the queue, from place `start` (from 0)."""
    with queue_snapshot(ctx) as (tx, seen):
        items = entries(tx, seen, start, limit)
    more = start + limit < len(seen.queue)
    return Page[QueueEntry](items=items, next=str(start + limit) if more else None)


def entries(tx: Connection, seen: QueueSnapshot, start: int, limit: int) -> list[QueueEntry]:
    """The queue from place `start` (from 0), each job with the strongest reason why it waits."""
    some = [seen.state.waiting[job] for job in seen.queue[start : start + limit]]
    if not some:
        return []
    found = _found(seen, some)
    rows = _titles(tx, [waiting.job for waiting in some])
    first = [waiting.job for waiting in some[:MAX_FORECASTS]] if start == 0 else []
    expected = forecast.expected_starts(seen.state, first, seen.now, seen.policy, seen.queue)
    words = _words(seen, found, _names(tx, seen, found), expected)
    return [
        QueueEntry(
            position=number,
            job=waiting.job,
            number=waiting.number,
            name=rows[waiting.job].name,
            user=rows[waiting.job].user,
            priority=_PRIORITIES[waiting.priority],
            gpus=waiting.gpus,
            held=waiting.ineligible is IneligibleReason.HELD,
            reason=words[id(found[waiting.job])],
            **_when(expected.get(waiting.job)),
        )
        for number, waiting in enumerate(some, start + 1)
    ]


def _found(seen: QueueSnapshot, some: Sequence[Waiting]) -> dict[str, list[Blocker]]:
    """What is in the way of these jobs. The same stands in the way of all that are alike, and is looked for once."""
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


def _words(
    seen: QueueSnapshot, found: dict[str, list[Blocker]], names: reasons.Names, expected: Mapping[str, Expected]
) -> dict[int, str]:
    """The strongest reason by the identity of what is in the way, which many jobs have in common: as it is for the
    first of them.
    """
    lists = {id(blockers): (job, blockers) for job, blockers in reversed(found.items())}
    return {
        key: reasons.reasons(seen.state, job, blockers, names, seen.now, _p50(expected.get(job)))[0].message
        for key, (job, blockers) in lists.items()
    }


def why(ctx: Context, job_id: str, caller: Caller) -> Why:
    """Why the job is where it is."""
    with queue_snapshot(ctx, job_id) as (tx, seen):
        job = tx.execute(select(Job.__table__).where(Job.id == job_id)).one()
        if job.state == JobState.QUEUED:
            return _why_waiting(ctx, tx, job, seen, caller)
        return job_status.why(tx, job, seen.state.running.get(job.id), seen.state, seen.now)


def _why_waiting(ctx: Context, tx: Connection, job: Row[Any], seen: QueueSnapshot, caller: Caller) -> Why:
    waiting = seen.state.waiting[job.id]
    review = DecisionReview(seen.state, seen.now, seen.policy)
    found = review.blockers(job.id)
    names = _names(tx, seen, {job.id: found}, job)
    place = seen.queue.index(job.id) + 1
    expected = forecast.expected_start(seen.state, job.id, seen.now, seen.policy, seen.queue)
    told = reasons.reasons(seen.state, job.id, found, names, seen.now, expected.p50_us)
    variant = variants.JobVariants(ctx, tx, job, waiting, seen.state, caller)
    other = (
        []
        if review.moves(job.id)
        else alternatives.find(seen.state, job.id, seen.now, seen.policy, variant.build, expected)
    )
    return Why(
        state=JobState.QUEUED,
        summary=f"Job {job.number} waits at place {place}: {told[0].message}.",
        reasons=told + job_status.before(tx, job) + _advice(tx, waiting, seen),
        position=place,
        alternatives=[variants.presented(job.number, each) for each in other],
        **_when(expected),
    )


def _p50(expected: Expected | None) -> int | None:
    return None if expected is None else expected.p50_us


def _when(expected: Expected | None) -> dict[str, datetime | None]:
    p50, p90 = expected or (None, None)
    return {
        "expected_start_at": None if p50 is None else minute(p50),
        "expected_start_p90_at": None if p90 is None else minute(p90),
    }


def _advice(tx: Connection, waiting: Waiting, seen: QueueSnapshot) -> list[Reason]:
    found = fit.advice(tx, waiting.resources, list(seen.state.nodes.values()), waiting.nodes)
    return [Reason(code="advice", message=message) for message in found]


def _names(
    tx: Connection, seen: QueueSnapshot, found: dict[str, list[Blocker]], job: Row[Any] | None = None
) -> reasons.Names:
    """All that reasons may call by name; of a single job also what it waits for."""
    lists = {id(blockers): (one, blockers) for one, blockers in found.items()}  # many jobs have the same one
    jobs = [name for one, blockers in lists.values() for name in reasons.mentioned(seen.state, one, blockers)]
    users = [blocker.reached.whose for blockers in found.values() for blocker in blockers if blocker.reached]
    awaited = _awaited(tx, job) if job is not None else []
    rows = _titles(tx, [*jobs, *(row.needs for row in awaited)])
    titles = {name: reasons.Title(number=row.number, user=row.user) for name, row in rows.items()}
    after = (job.spec.get("after") or {}) if job is not None else {}
    return reasons.Names(
        jobs=titles,
        users=_users(tx, users),
        awaited=[reasons.Awaited(job=row.needs, title=titles[row.needs], state=row.state) for row in awaited],
        need=f"{after.get('when', 'success')} of {after.get('need', 'all')}" if after else "",
        paused=_paused(tx, job) if job is not None else "",
        accounts={
            (one, node): words
            for one, blockers in lists.values()
            if any(blocker.obstacle is Obstacle.ACCOUNT for blocker in blockers)
            for node, words in unix_accounts.reasons(tx, seen.state.waiting[one].user).items()
        },
    )


def _awaited(tx: Connection, job: Row[Any]) -> list[Row[Any]]:
    """The jobs that this one waits for and that are not over."""
    if not job.blocked:
        return []
    query = (
        select(Dependency.needs, Job.state)
        .join(Job, Job.id == Dependency.needs)
        .where(Dependency.job_id == job.id, Job.ended_us.is_(None))
        .order_by(Job.number)
    )
    return list(tx.execute(query.limit(100)))


def _paused(tx: Connection, job: Row[Any]) -> str:
    if job.group_id is None:
        return ""
    return tx.scalar(select(Group.paused).where(Group.id == job.group_id)) or ""


def _users(tx: Connection, users: Iterable[str]) -> dict[str, str]:
    wanted = sorted(set(users))
    rows = tx.execute(select(User.id, User.name).where(User.id.in_(wanted))) if wanted else ()
    return {row.id: row.name for row in rows}


def _titles(tx: Connection, jobs: Iterable[str]) -> dict[str, Row[Any]]:
    query = select(Job.id, Job.number, Job.name, User.name.label("user")).join(User, User.id == Job.user_id)
    found: Iterable[Row[Any]] = tx.execute(query.where(Job.id.in_(sorted(set(jobs)))))
    return {row.id: row for row in found}
