"""Lists of jobs in the order of another column than their number, by keyset cursors."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, case, func, or_, select

from service.db.models import Job, User
from service.db.records.jobs import JobVersion
from service.errors import field_problem
from service.identity.callers import Caller
from service.jobs import find
from service.jobs.versions import COLUMNS

#: A minus is for the largest first.
Order = Literal["name", "-name", "user", "-user", "priority", "-priority", "duration", "-duration"]
#: Duration of a job that never started: the shortest.
_NEVER = -1


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The last job of a page: the value that it was ordered by, its number, and when the list was begun."""

    value: str | int
    number: int
    now_us: int


def page(
    tx: Connection, caller: Caller, filters: find.Filters, span: find.Span, order: Order, now_us: int
) -> tuple[list[JobVersion], str | None]:
    """Return the versions of the jobs that pass, in the order of a column, and the cursor of the next page.

    Of equal ones the newest comes first. The list is ordered as of its first page: what runs does not move meanwhile.
    """
    column, falling = order.removeprefix("-"), order.startswith("-")
    after = None if span.cursor is None else _read(span.cursor, of_text=column in ("name", "user"))
    key = _key(column, now_us if after is None else after.now_us)
    filters = find.narrowed(tx, caller, filters)
    query = find.filtered(select(Job.number, key.label("value")), caller, filters)
    if filters.among is not None:
        query = query.where(Job.number.in_(filters.among))
    if after is not None:
        beyond = key < after.value if falling else key > after.value
        query = query.where(or_(beyond, (key == after.value) & (Job.number < after.number)))
    query = query.order_by(key.desc() if falling else key, Job.number.desc())
    found = tx.execute(query.limit(span.limit + 1).offset(span.offset)).all()
    shown = found[: span.limit]
    following = None
    if len(found) > span.limit:
        following = _write(_Cursor(shown[-1].value, shown[-1].number, now_us if after is None else after.now_us))
    return _versions(tx, [row.number for row in shown]), following


def _key(column: str, now_us: int) -> Any:
    if column == "name":
        return func.lower(Job.name)
    if column == "user":
        return select(User.name).where(User.id == Job.user_id).scalar_subquery()
    if column == "priority":
        return Job.priority
    ran = func.coalesce(Job.ended_us, now_us) - Job.started_us
    return case((Job.started_us.is_(None), _NEVER), else_=ran)


def _versions(tx: Connection, numbers: list[int]) -> list[JobVersion]:
    rows = {row.number: row for row in JobVersion.all(tx.execute(select(*COLUMNS).where(Job.number.in_(numbers))))}
    return [rows[number] for number in numbers]


def _write(cursor: _Cursor) -> str:
    text = json.dumps([cursor.value, cursor.number, cursor.now_us])
    return base64.urlsafe_b64encode(text.encode()).decode()


def _read(text: str, *, of_text: bool) -> _Cursor:
    try:
        value, number, now_us = json.loads(base64.urlsafe_b64decode(text.encode()))
    except (binascii.Error, UnicodeError, ValueError, TypeError):
        value, number, now_us = None, None, None
    fits = isinstance(value, str if of_text else int) and isinstance(number, int) and isinstance(now_us, int)
    if not fits or any(isinstance(each, int) and not -1 <= each < 2**62 for each in (value, number, now_us)):
        raise field_problem("cursor", "is not one that this list has answered: begin without it")
    return _Cursor(value, number, now_us)
