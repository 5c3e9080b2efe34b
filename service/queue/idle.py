"""Idle devices as people see them: for whom, until when, and who cannot be stopped for it."""

import math
from collections.abc import Sequence

from sqlalchemy import Connection

from service import notices
from service.db.engine import Database
from service.infra.times import minute
from service.queue import titles
from service.queue.snapshot import QueueSnapshot, queue_snapshot
from service.scheduler.explain import idle, idle_words
from service.scheduler.explain.blockers import DecisionReview
from service.scheduler.explain.names import Names, Title
from service.scheduler_cache.load import Loader
from torchyard.api import IdleDevices
from torchyard.ids import JobId


def load(db: Database, loader: Loader, now: int) -> list[IdleDevices]:
    """Return all devices that no job has, by node, and why."""
    with queue_snapshot(db, loader, now) as (tx, seen):
        return of_snapshot(tx, seen)


def of_snapshot(tx: Connection, seen: QueueSnapshot) -> list[IdleDevices]:
    """Return the devices that no job has at the moment of the snapshot, by node, and why."""
    review = DecisionReview(seen.state, seen.now, seen.policy)
    found = idle.find(seen.state, review, seen.queue, seen.now)
    rows = titles.load(tx, idle_words.mentioned(found))
    names = Names(
        jobs={job: Title(number=row.number, user=row.user) for job, row in rows.items()},
        pause=notices.pause_params(tx) if seen.state.paused else {},
    )
    return [_shown(seen, names, each) for each in found]


def _shown(seen: QueueSnapshot, names: Names, each: idle.NodeIdleDevices) -> IdleDevices:
    job = _numbers(names, [] if each.job is None else [each.job])
    message, params = idle_words.tell(seen.state, names, each)
    return IdleDevices(
        node=each.node,
        devices=sorted(slot.index for slot in seen.state.nodes[each.node].slots if slot.uuid in each.uuids),
        code=each.reason.value,
        message=message,
        params=params,
        job=job[0] if job else None,
        until=None if each.until_us == math.inf else minute(max(each.until_us, seen.now)),
        unstoppable=_numbers(names, each.unstoppable),
    )


def _numbers(names: Names, jobs: Sequence[JobId]) -> list[int]:
    return [names.jobs[job].number for job in jobs if job in names.jobs]
