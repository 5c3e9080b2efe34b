"""Audit: the record of changes that people made, and of requests that were refused.

A change that is made in a transaction is recorded in it (`record`), so neither is there without the other. What else a
request has changed, and its refusal, is recorded by the middleware that sets the request (`service.api.audited`).
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, insert, or_, select, update

from service.db.engine import Database
from service.db.models import Audit, User
from service.db.records.record import Record
from service.identity.callers import Caller
from service.infra.times import microseconds, moment
from torchyard import api
from torchyard.ids import new_id

#: Stands for the user of a request without a token that counts.
UNKNOWN_USER = "(unknown)"
#: Rows of a table that is downloaded, read in pages of this size.
CSV_PAGE = 500
_COLUMNS = ("at", "user", "address", "action", "subject", "result", "status", "times", "data")
_INSERT = insert(cast("Table", Audit.__table__))
_ADD_TIMES = (
    update(cast("Table", Audit.__table__))
    .where(Audit.id == bindparam("entry"))
    .values(times=Audit.times + bindparam("more"))
)


@dataclass(frozen=True, slots=True)
class _AuditRecord(Record):
    """A row of `audit`, with the user's name; None for a user who is not known any more."""

    id: str
    at_us: int
    user_id: str
    name: str | None
    address: str | None
    action: str
    subject: str
    status: int | None
    times: int
    data: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class AuditFilter:
    """Entries to show: all that fit each field that is given."""

    user: str | None = None
    action: str | None = None
    """An action such as ``job.cancel``, or what it is about, such as ``job``."""
    since: datetime | None = None
    until: datetime | None = None
    refused: bool | None = None


@dataclass(slots=True)
class AuditedRequest:
    """The request under way: where it came from, and whether its change is in the audit already."""

    address: str | None
    action: Callable[[], str]
    """Its action, once its route is known."""
    recorded: bool = False
    hidden: bool = False
    """It names what exists and is hidden from the caller, so it is answered as unknown."""


_REQUEST: ContextVar[AuditedRequest | None] = ContextVar("audited_request", default=None)


@contextmanager
def auditing(request: AuditedRequest) -> Iterator[None]:
    """Take a request as the one that changes come from, in the block and the threads that it starts."""
    token = _REQUEST.set(request)
    try:
        yield
    finally:
        _REQUEST.reset(token)


def record(tx: Connection, caller: Caller, action: str, subject: str, now: int, **data: Any) -> None:
    """Record what a caller changes, in the transaction that changes it."""
    record_user(tx, caller.user_id, action, subject, now, **data)


def record_request(tx: Connection, caller: Caller, subject: str, now: int) -> None:
    """Record that the request under way changes the subject; outside of a request it is no person's change."""
    request = _REQUEST.get()
    if request is not None:
        record(tx, caller, request.action(), subject, now)


def mark_hidden() -> None:
    """Have the request under way recorded as refused: what it names exists, and the caller may not know."""
    request = _REQUEST.get()
    if request is not None:
        request.hidden = True


def record_user(tx: Connection, user_id: str, action: str, subject: str, now: int, **data: Any) -> None:
    """Record what a user changes who is no caller yet, as who signs in."""
    request = _REQUEST.get()
    address = None
    if request is not None:
        request.recorded, address = True, request.address
    insert_entry(tx, now, user_id=user_id, address=address, action=action, subject=subject, data=data)


def store(db: Database, now: int, **columns: Any) -> None:
    """Store an entry of its own, of a change that is made."""
    with db.write() as tx:
        insert_entry(tx, now, **columns)


def insert_entry(tx: Connection, now: int, **columns: Any) -> None:
    """Store an entry; without an `id` it gets a fresh one."""
    tx.execute(_INSERT, {"id": new_id("audit"), "at_us": now, "data": {}, **columns})


def add_times(tx: Connection, entry: str, times: int) -> None:
    """Add to how often the same was refused."""
    tx.execute(_ADD_TIMES, {"entry": entry, "more": times})


def page(db: Database, which: AuditFilter, cursor: str | None, limit: int) -> api.Page[api.AuditEntry]:
    """Return a page of the audit, the newest entry first."""
    query = select(Audit.__table__, User.name).outerjoin(User, User.id == Audit.user_id).where(*_conditions(which))
    if cursor is not None:
        query = query.where(Audit.id < cursor)
    with db.read() as tx:
        found = _AuditRecord.all(tx.execute(query.order_by(Audit.id.desc()).limit(limit + 1)))
    following = found[limit - 1].id if len(found) > limit else None
    return api.Page[api.AuditEntry](items=[_entry(each) for each in found[:limit]], next=following)


def as_csv(db: Database, which: AuditFilter) -> Iterator[str]:
    """Yield all entries that fit as a table with a header, the newest first, a page at a time."""
    yield _rows([_COLUMNS])
    cursor: str | None = None
    while True:
        found = page(db, which, cursor, CSV_PAGE)
        yield _rows([_cells(entry) for entry in found.items])
        cursor = found.next
        if cursor is None:
            return


def forget_old(db: Database, now: int, keep_s: int) -> None:
    """Delete entries that are older than `keep_s` seconds."""
    with db.write() as tx:
        tx.execute(delete(Audit).where(Audit.at_us < now - keep_s * 1_000_000))


def _conditions(which: AuditFilter) -> Iterator[ColumnElement[bool]]:
    if which.user is not None:
        # Of a user who is not known any more the id is shown, and found by.
        yield (
            Audit.user_id == ""
            if which.user == UNKNOWN_USER
            else or_(User.name == which.user, Audit.user_id == which.user)
        )
    if which.action is not None:
        yield or_(Audit.action == which.action, Audit.action.startswith(f"{which.action}.", autoescape=True))
    if which.since is not None:
        yield Audit.at_us >= microseconds(which.since)
    if which.until is not None:
        yield Audit.at_us < microseconds(which.until)
    if which.refused is not None:
        yield Audit.status.is_not(None) if which.refused else Audit.status.is_(None)


def _entry(record: _AuditRecord) -> api.AuditEntry:
    return api.AuditEntry(
        id=record.id,
        at=moment(record.at_us),
        user=record.name or record.user_id or UNKNOWN_USER,
        action=record.action,
        subject=record.subject,
        data=record.data,
        address=record.address,
        result="done" if record.status is None else "refused",
        status=record.status,
        times=record.times,
    )


def _cells(entry: api.AuditEntry) -> list[str]:
    shown = entry.model_dump(mode="json")
    given = [shown[name] for name in _COLUMNS[:-1]]
    return [_cell("" if each is None else str(each)) for each in given] + [json.dumps(entry.data) if entry.data else ""]


def _cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: strangers choose some of them."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _rows(rows: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
