"""Audit: the record of changes that people made, beside the jobs' own events."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from service.db.engine import Database
from service.db.models import Audit, User
from service.db.records.record import Record
from service.identity.callers import Caller
from service.infra.times import moment
from torchyard import api
from torchyard.ids import new_id


@dataclass(frozen=True, slots=True)
class _AuditRecord(Record):
    """A row of `audit`, with the user's name; None for a user who is not known any more."""

    id: str
    at_us: int
    user_id: str
    name: str | None
    action: str
    subject: str
    data: dict[str, Any]


def record(tx: Connection, caller: Caller, action: str, subject: str, now: int, **data: Any) -> None:
    """Record what a caller has changed."""
    tx.execute(
        insert(Audit).values(
            id=new_id("audit"), at_us=now, user_id=caller.user_id, action=action, subject=subject, data=data
        )
    )


def page(db: Database, cursor: str | None, limit: int) -> api.Page[api.AuditEntry]:
    """Return a page of the audit, the newest entry first."""
    query = select(Audit.__table__, User.name).outerjoin(User, User.id == Audit.user_id)
    if cursor is not None:
        query = query.where(Audit.id < cursor)
    with db.read() as tx:
        found = _AuditRecord.all(tx.execute(query.order_by(Audit.id.desc()).limit(limit + 1)))
    following = found[limit - 1].id if len(found) > limit else None
    return api.Page[api.AuditEntry](items=[_entry(each) for each in found[:limit]], next=following)


def _entry(record: _AuditRecord) -> api.AuditEntry:
    return api.AuditEntry(
        id=record.id,
        at=moment(record.at_us),
        user=record.name or record.user_id,
        action=record.action,
        subject=record.subject,
        data=record.data,
    )
