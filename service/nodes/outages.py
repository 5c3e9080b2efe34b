"""Outages as people see them: when a device, or a whole node, was given to no new job, and why."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, or_, select

from service.db import models
from service.db.records.record import Record
from service.infra.times import moment
from torchyard.api import Outage, OutageKind
from torchyard.wire import Finding

#: Most outages that are told: more than a screen has pixels for.
MAX_OUTAGES = 2_000
#: A node, and one of its devices; None: the whole node.
Place = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class _Outage(Record):
    """A span in which a device, or with no UUID its node, was given to no new job."""

    node: str
    uuid: str | None
    kind: OutageKind
    reason: str
    finding: Finding | None
    started_us: int
    ended_us: int | None


def since(tx: Connection, since_us: int) -> Mapping[Place, list[Outage]]:
    """Return the newest outages that reach past a moment, by what they are of, in the order of their beginning."""
    stored = models.Outage
    query = (
        select(*_Outage.columns(stored))
        .where(or_(stored.ended_us.is_(None), stored.ended_us > since_us))
        .order_by(stored.ended_us.is_not(None), stored.ended_us.desc())
        .limit(MAX_OUTAGES)
    )
    found: defaultdict[Place, list[Outage]] = defaultdict(list)
    for each in sorted(_Outage.each(tx.execute(query)), key=lambda each: each.started_us):
        found[each.node, each.uuid].append(_shown(each))
    return found


def _shown(each: _Outage) -> Outage:
    return Outage(
        kind=each.kind,
        reason=each.reason,
        finding=each.finding,
        starts_at=moment(each.started_us),
        ends_at=None if each.ended_us is None else moment(each.ended_us),
    )
