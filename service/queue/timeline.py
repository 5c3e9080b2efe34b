"""Timeline of all devices: allocations and outages of the last hours, forecasts of the next ones, and reservations.

One query reads the allocations, by an index on when they were released, and the forecasts come from the same moment of
the queue. Of jobs that the caller may not read, user, resources and times are told.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, or_, select

from service.db.engine import Database
from service.db.models import Allocation, Attempt
from service.db.records.record import Record
from service.identity.callers import Caller
from service.identity.visibility import may_read, shown_name
from service.infra.times import minute, moment
from service.nodes import listing, outages, reservations
from service.queue import idle, titles
from service.queue.job_status import expected_end
from service.queue.overview import MAX_FORECASTS
from service.queue.snapshot import QueueSnapshot, queue_snapshot
from service.queue.titles import JobTitle
from service.scheduler.explain import forecast
from service.scheduler.explain.forecast import Expected
from service.scheduler_cache.load import Loader
from torchyard.api import DeviceAllocation, DeviceTimeline, NodeTimeline, Outage, Timeline, TimelineJob
from torchyard.ids import JobId
from torchyard.states import AttemptState

#: Most allocations that are told: more than a screen has pixels for.
MAX_ALLOCATIONS = 6_000
MINUTE_US = 60 * 1_000_000
#: Node and UUID.
DeviceKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Allocation(Record):
    """A device that an attempt has or had."""

    node: str
    uuid: str
    job_id: JobId
    number: int
    state: AttemptState
    created_us: int
    released_us: int | None
    share: int | None


class _Forecast(NamedTuple):
    """Expected start (of a waiting job) and end of a job, in microseconds; None where that cannot be told."""

    start_p50_us: int | None = None
    start_p90_us: int | None = None
    end_p50_us: int | None = None
    end_p90_us: int | None = None


def load(db: Database, loader: Loader, now: int, caller: Caller, back_us: int) -> Timeline:
    """Return the timeline from `back_us` before now, to the minute, on."""
    since = (now - back_us) // MINUTE_US * MINUTE_US
    with queue_snapshot(db, loader, now) as (tx, seen):
        found, since = _allocations(tx, since)
        waiting = _waiting(seen)
        forecasts = _running(seen) | {job: _of(expected) for job, expected in waiting.items()}
        named = titles.load(tx, {*(each.job_id for each in found), *waiting})
        shown = sorted(named.values(), key=lambda each: each.number)
        places = _places(waiting, named)
        return Timeline(
            since=moment(since),
            nodes=_nodes(tx, caller, found, named, places, outages.since(tx, since)),
            jobs=[_job(each, forecasts.get(each.id, _Forecast()), caller) for each in shown],
            reservations=reservations.since(tx, since, now),
            idle=idle.of_snapshot(tx, seen),
        )


def allocations_since(since: int) -> Select[Any]:
    """Return the query of the newest allocations that reach past a moment, one more than are told."""
    own = (getattr(Attempt, name).label(name) for name in ("job_id", "number", "state"))
    return (
        select(*_Allocation.columns(Allocation, *own))
        .join(Attempt, Attempt.id == Allocation.attempt_id)
        .where(or_(Allocation.released_us.is_(None), Allocation.released_us > since))
        .order_by(Allocation.live.desc(), Allocation.released_us.desc())
        .limit(MAX_ALLOCATIONS + 1)
    )


def _allocations(tx: Connection, since: int) -> tuple[list[_Allocation], int]:
    """Return the newest allocations that reach past `since`, and from when on these are all."""
    found = _Allocation.all(tx.execute(allocations_since(since)))
    if len(found) <= MAX_ALLOCATIONS:
        return found, since
    return found[:MAX_ALLOCATIONS], found[MAX_ALLOCATIONS].released_us or since


def _waiting(seen: QueueSnapshot) -> dict[JobId, Expected]:
    """Return the jobs that are expected to start, the first of the queue."""
    first = [] if seen.state.paused else list(seen.queue[:MAX_FORECASTS])  # how long a pause lasts nobody knows
    expected = forecast.expected_starts(seen.state, first, seen.now, seen.policy, seen.queue) if first else {}
    return {job: found for job, found in expected.items() if found.p50_us is not None}


def _running(seen: QueueSnapshot) -> dict[JobId, _Forecast]:
    ends = {job: expected_end(running, seen.state, seen.now) for job, running in seen.state.running.items()}
    return {job: _Forecast(end_p50_us=end[0], end_p90_us=end[1]) for job, end in ends.items() if end is not None}


def _of(expected: Expected) -> _Forecast:
    p50, p90 = (None if math.isinf(end) else round(end) for end in (expected.end_p50_us, expected.end_p90_us))
    return _Forecast(expected.p50_us, expected.p90_us, p50, p90)


def _places(waiting: Mapping[JobId, Expected], named: Mapping[JobId, JobTitle]) -> Mapping[DeviceKey, list[int]]:
    """Return the numbers of the jobs that are expected on each device, in the order of the queue."""
    found: defaultdict[DeviceKey, list[int]] = defaultdict(list)
    for job, expected in waiting.items():
        for placement in expected.placements:
            for uuid in placement.uuids:
                found[placement.node, uuid].append(named[job].number)
    return found


def _nodes(
    tx: Connection,
    caller: Caller,
    found: Iterable[_Allocation],
    named: Mapping[JobId, JobTitle],
    places: Mapping[DeviceKey, list[int]],
    out: Mapping[outages.Place, list[Outage]],
) -> list[NodeTimeline]:
    held: defaultdict[DeviceKey, list[DeviceAllocation]] = defaultdict(list)
    for each in sorted(found, key=lambda each: (each.created_us, each.job_id)):
        held[each.node, each.uuid].append(_allocation(each, named[each.job_id], caller))
    return [
        NodeTimeline(
            name=node.name,
            state=listing.state(node),
            maintenance=node.maintenance,
            devices=[
                DeviceTimeline(
                    uuid=device.uuid,
                    index=device.index,
                    kind=device.kind,
                    unusable=device.unusable,
                    finding=device.finding,
                    allocations=held[node.name, device.uuid],
                    expected=places.get((node.name, device.uuid), []),
                    outages=out.get((node.name, device.uuid), []),
                )
                for device in devices
            ],
            outages=out.get((node.name, None), []),
        )
        for node, devices in listing.with_devices(tx)
    ]


def _allocation(each: _Allocation, title: JobTitle, caller: Caller) -> DeviceAllocation:
    return DeviceAllocation(
        job=title.number,
        attempt=each.number,
        state=each.state if may_read(caller, title) else None,
        starts_at=moment(each.created_us),
        ends_at=None if each.released_us is None else moment(each.released_us),
        share=each.share,
    )


def _job(title: JobTitle, expected: _Forecast, caller: Caller) -> TimelineJob:
    start, start_p90, end, end_p90 = map(_minute, expected)
    return TimelineJob(
        number=title.number,
        name=shown_name(caller, title, title.name),
        user=title.user,
        readable=may_read(caller, title),
        expected_start_at=start,
        expected_start_p90_at=start_p90,
        expected_end_at=end,
        expected_end_p90_at=end_p90,
    )


def _minute(us: int | None) -> datetime | None:
    return None if us is None else minute(us)
