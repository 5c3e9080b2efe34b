"""Lists of jobs in the order of another column than their number, or of a metric's value, by keyset cursors."""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Literal, NamedTuple, get_args

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    exists,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    true,
    union_all,
)

from service.db.models import WAITS_AGAIN, Attempt, Job, MetricSeries, User
from service.db.number_lists import one_of
from service.db.records.jobs import JobVersion
from service.errors import field_problem
from service.identity.callers import Caller
from service.jobs import find, metric_filter
from service.jobs.versions import COLUMNS
from torchyard.spec import PRIORITY_RANK
from torchyard.states import JOB_FINAL, JobState
from torchyard.translatable import TranslatableText

Column = Literal["name", "user", "priority", "duration"]
#: Words before a metric's name, with the value that each means.
_METRICS: dict[str, metric_filter.Which] = {"metric": "last", "min": "min", "max": "max"}
#: How long a job ran, -1 if it never started, NULL while it holds devices: spelled as in the index of migration 0046.
_RAN: ColumnElement[int | None] = literal_column(
    "(CASE WHEN jobs.started_us IS NULL THEN -1 "
    "WHEN jobs.state IN ('queued', 'succeeded', 'failed', 'cancelled') THEN jobs.ran_us END)",
    BigInteger(),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ListOrder:
    """The order of a list: a column or a metric's value, and whether the largest comes first."""

    column: Column | None = None
    metric: str = ""
    which: metric_filter.Which = "last"
    falling: bool = False


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The last job of a page: the value that it was ordered by, its number, and when the list was begun."""

    value: str | float | None
    number: int
    now_us: int


class _Found(NamedTuple):
    """A job of a page: its number, and the value that it is ordered by."""

    number: int
    value: str | int


class _Group(NamedTuple):
    """Jobs with one value: conditions of its parts, each of which an index has in the order of numbers."""

    value: str | int
    parts: Sequence[ColumnElement[bool]]


def parse(text: str) -> ListOrder:
    """Return the order that a text says, such as ``max:val/accuracy``, or with a minus for the largest first
    ``-duration``; an ``invalid-request`` problem for any other.
    """
    key, falling = text.removeprefix("-"), text.startswith("-")
    for column in get_args(Column):
        if key == column:
            return ListOrder(column=column, falling=falling)
    word, _, name = key.partition(":")
    if word in _METRICS and name:
        return ListOrder(metric=name, which=_METRICS[word], falling=falling)
    raise field_problem(
        "order",
        TranslatableText(
            "list-order",
            "{text!r} is none: take one of {known}; a minus before it is for the largest first",
            text=text,
            known=("newest", "oldest", "queue", *get_args(Column), *(f"{each}:NAME" for each in _METRICS)),
        ),
    )


def page(
    tx: Connection, caller: Caller, filters: find.Filters, span: find.Span, order: ListOrder, now_us: int
) -> tuple[list[JobVersion], str | None]:
    """Return the versions of the jobs that pass, in the order of a column, and the cursor of the next page.

    Of equal ones the newest comes first, and jobs without the metric come last. By a column the list is ordered as of
    its first page: what runs does not move meanwhile. By user and priority a page is read group by group,
    by name and duration from an index; all that pass are sorted only where they are few.
    """
    after = None if span.cursor is None else _read(span.cursor, order)
    now_us = now_us if after is None else after.now_us
    filters = find.narrowed(tx, caller, filters)
    if order.column is None:
        found = _by_metric(tx, caller, filters, span, order, after)
    elif filters.among is None and order.column in ("user", "priority"):
        found = _by_group(tx, caller, filters, span, order, after)
    else:
        found = _by_key(tx, caller, filters, span, order, after, now_us)
    shown = found[: span.limit]
    following = None
    if len(found) > span.limit:
        following = _write(_Cursor(shown[-1].value, shown[-1].number, now_us))
    return _versions(tx, [row.number for row in shown]), following


def _by_key(
    tx: Connection,
    caller: Caller,
    filters: find.Filters,
    span: find.Span,
    order: ListOrder,
    after: _Cursor | None,
    now_us: int,
) -> Sequence[Any]:
    """Return the first jobs behind the cursor, by a key that an index has in order, but for those that run."""
    most = span.offset + span.limit + 1
    parts = [
        _part(_of_jobs(select(Job.number, key.label("value")).where(has), caller, filters), key, order, after, most, 0)
        for key, has in _keys(order.column, now_us, sort=filters.among is not None)
    ]
    together = union_all(*(select(part.subquery()) for part in parts)).subquery().c
    by: tuple[Any, ...] = (together.value.desc() if order.falling else together.value, together.number.desc())
    return tx.execute(
        select(together.number, together.value).order_by(*by).limit(span.limit + 1).offset(span.offset)
    ).all()


def _of_jobs(query: find.Query, caller: Caller, filters: find.Filters) -> find.Query:
    query = find.filtered(query, caller, filters)
    return query if filters.among is None else query.where(one_of(Job.number, filters.among))


def _part(query: find.Query, key: Any, order: ListOrder, after: _Cursor | None, limit: int, offset: int) -> find.Query:
    """Return a query of the jobs behind the cursor, in the order of a key."""
    if after is not None:
        # An index is read from the first condition on: within an OR it would be read from its beginning.
        query = query.where(key <= after.value if order.falling else key >= after.value)
        query = query.where(or_(key != after.value, Job.number < after.number))
    return query.order_by(key.desc() if order.falling else key, Job.number.desc()).limit(limit).offset(offset)


def _by_metric(
    tx: Connection, caller: Caller, filters: find.Filters, span: find.Span, order: ListOrder, after: _Cursor | None
) -> Sequence[Any]:
    """Return numbers and values of the jobs that have one, from an index in their order, then those of the others."""
    value, has_it = metric_filter.value_in(order.metric, order.which)
    most, found, passed = span.limit + 1, list[Any](), 0
    having = filters if filters.among is not None else replace(filters, among=_with_attempts(tx, filters))
    if (after is None or after.value is not None) and having.among != []:
        query = select(Job.number, value.label("value")).join(MetricSeries, MetricSeries.number == Job.number)
        query = _of_jobs(query.where(has_it, value.is_not(None)), caller, having)
        if having.among is not None:
            query = query.where(one_of(MetricSeries.number, having.among))
        found += tx.execute(_part(query, value, order, after, most, span.offset))
        passed = span.offset
        if passed and not found:
            before = _part(query, value, order, after, passed, 0).subquery()
            passed = tx.scalar(select(func.count()).select_from(before)) or 0
    if len(found) == most:
        return found
    of_job = MetricSeries.number == Job.number  # in an index, which databases pass over for that of the values
    without = ~exists().where(of_job, has_it, _unindexed(value).is_not(None)).correlate(Job)
    others = _of_jobs(select(Job.number, null().label("value")).where(without), caller, filters)
    if after is not None and after.value is None:
        others = others.where(Job.number < after.number)
    rest = others.order_by(Job.number.desc()).limit(most - len(found)).offset(span.offset - passed)
    return [*found, *tx.execute(rest)]


def _with_attempts(tx: Connection, filters: find.Filters) -> list[int] | None:
    """Return the numbers of the jobs of these states that have had an attempt: no other has a metric.

    None where these are too many. A long queue has few of them, and would else be compared with all series.
    """
    if not filters.state or not JOB_FINAL.isdisjoint(filters.state):
        return None
    ran = (
        select(Job.number).where(WAITS_AGAIN if state is JobState.QUEUED else Job.state == state)
        for state in filters.state
    )
    found = list(tx.scalars(union_all(*ran).limit(find.FEW + 1)))
    return found if len(found) <= find.FEW else None


def _by_group(
    tx: Connection, caller: Caller, filters: find.Filters, span: find.Span, order: ListOrder, after: _Cursor | None
) -> Sequence[_Found]:
    """Return the first jobs behind the cursor, group by group: no later group is looked at."""
    query, most = find.filtered(select(Job.number), caller, filters), span.offset + span.limit + 1
    found = list[_Found]()
    for group in _groups(tx, filters, order, None if after is None else after.value):
        left = most - len(found)
        newest = query.order_by(Job.number.desc()).limit(left)
        if after is not None and group.value == after.value:
            newest = newest.where(Job.number < after.number)
        parts = (select(newest.where(part).subquery().c.number) for part in group.parts)
        together = union_all(*parts).subquery().c.number
        numbers = tx.scalars(select(together).order_by(together.desc()).limit(left))
        found += [_Found(number, group.value) for number in numbers]
        if len(found) == most:
            break
    return found[span.offset :]


def _groups(tx: Connection, filters: find.Filters, order: ListOrder, start: str | float | None) -> list[_Group]:
    """Return the jobs of each user or priority, in order, from a value on."""
    if order.column == "user":
        users = select(User.id, User.name).where(exists().where(Job.user_id == User.id))
        users = users.order_by(User.name.desc() if order.falling else User.name)
        if start is not None:
            users = users.where(User.name <= start if order.falling else User.name >= start)
        return [_Group(name, [Job.user_id == user]) for user, name in tx.execute(users)]
    ranks = sorted(PRIORITY_RANK.values(), reverse=order.falling)
    passed = takewhile(lambda rank: start is not None and rank != start, ranks)
    return [
        _Group(rank, [(Job.state == state) & (Job.priority == rank) for state in filters.state or JobState])
        for rank in ranks[len(list(passed)) :]
    ]


def _keys(column: Column | None, now_us: int, *, sort: bool) -> list[tuple[ColumnElement[Any], ColumnElement[bool]]]:
    """Return the keys of an order, and the condition of the jobs that have each; `sort`: no index is to be read."""
    if column == "user":
        return [(select(User.name).where(User.id == Job.user_id).scalar_subquery(), true())]
    if column == "priority":
        return [(Job.priority.expression, true())]
    if column == "name":
        name = func.lower(Job.name)
        return [(_unindexed(name) if sort else name, true())]
    begun = select(Attempt.started_us).where(Attempt.job_id == Job.id, Attempt.number == Job.attempt).scalar_subquery()
    return [
        (_unindexed(_RAN) if sort else _RAN, _RAN.is_not(None)),
        (Job.ran_us + func.coalesce(literal(now_us, BigInteger()) - begun, 0), _RAN.is_(None)),
    ]


def _unindexed(key: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a key such that databases take no index of it."""
    return func.coalesce(key, key)


def _versions(tx: Connection, numbers: list[int]) -> list[JobVersion]:
    rows = {row.number: row for row in JobVersion.all(tx.execute(select(*COLUMNS).where(Job.number.in_(numbers))))}
    return [rows[number] for number in numbers]


def _write(cursor: _Cursor) -> str:
    text = json.dumps([cursor.value, cursor.number, cursor.now_us])
    return base64.urlsafe_b64encode(text.encode()).decode()


def _read(text: str, order: ListOrder) -> _Cursor:
    try:
        value, number, now_us = json.loads(base64.urlsafe_b64decode(text.encode()))
        str(value).encode()  # no database takes a lone surrogate
    except (binascii.Error, UnicodeError, ValueError, TypeError, RecursionError):
        value, number, now_us = None, None, None
    numbers = [each for each in (value, number, now_us) if type(each) is int]
    fits = type(value) in _kinds(order) and type(number) is type(now_us) is int
    # A duration is below 0 where the clock of the node that told the start was ahead.
    if not fits or not all(-(2**62) <= each < 2**62 for each in numbers):
        raise field_problem(
            "cursor",
            TranslatableText("list-cursor", "is not one that this list has answered: begin without it"),
        )
    return _Cursor(value, number, now_us)


def _kinds(order: ListOrder) -> tuple[type, ...]:
    """Return the types of the values in an order's cursors."""
    if order.column is None:
        return float, type(None)
    return (str,) if order.column in ("name", "user") else (int,)
