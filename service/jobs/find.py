"""Lists of jobs: filters and cursors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select, union, union_all

from service.db.models import Group, Job, MetricSeries, Tag, User
from service.db.records.jobs import JobVersion
from service.errors import field_problem
from service.identity.callers import Caller
from service.identity.visibility import readable
from service.jobs import metric_filter, text_search
from service.jobs.metric_filter import MetricFilter
from service.jobs.versions import COLUMNS
from torchyard.states import JobState

MAX_PAGE = 500
#: Jobs of a state that are counted at most: beyond it a list has "more than" so many.
MOST = 10_000
#: Queries that a list is put together from at most.
MOST_ALTERNATIVES = 32
#: How many jobs of a list can be passed over at most.
MAX_OFFSET = 1_000_000
Query = TypeVar("Query", bound="Select[*tuple[Any, ...]]")


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters of a list: an empty one lets everything pass, several states or tags are alternatives.

    The tag "" is of jobs that have none.
    """

    state: Sequence[JobState] = ()
    user: str | None = None
    project: str | None = None
    tag: Sequence[str] = ()
    q: str | None = None
    """Part of the name, the number, or the beginning of the id."""
    group: str | None = None
    """Only trials of the sweep with this number or id, or of those with this name."""
    refs: Sequence[str] = ()
    """Only these, by number or id."""
    trials: bool = True
    """Jobs that belong to a sweep are shown."""
    metric: Sequence[MetricFilter] = ()
    """All of them must pass."""
    among: Sequence[int] | None = None
    """Numbers of all jobs that `q` can match, where they are few (`narrowed`)."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Part of a list: at most `limit` jobs after the cursor's, or after the first `offset` ones."""

    limit: int
    cursor: str | None = None
    offset: int = 0
    order: Literal["newest", "oldest"] = "newest"


def page(tx: Connection, caller: Caller, filters: Filters, span: Span) -> tuple[list[JobVersion], str | None]:
    """Return the versions of the jobs that pass, of the caller's alone, and the cursor of the next page."""
    limit = span.limit
    filters = narrowed(tx, filters)
    ordered = [_ordered(caller, each, span) for each in _alternatives(filters)]
    # A job may have several of the tags; counted twice it would end the page early.
    together = union if len(filters.tag) > 1 else union_all
    numbers = together(*(select(each.subquery().c.number) for each in ordered)).subquery()
    some = select(numbers.c.number).order_by(_by(numbers.c.number, span)).limit(limit + 1).offset(span.offset)
    query = select(*COLUMNS).where(Job.number.in_(select(some.subquery().c.number))).order_by(_by(Job.number, span))
    rows = JobVersion.all(tx.execute(query))
    more = len(rows) > limit
    rows = rows[:limit]
    return rows, str(rows[-1].number) if more else None


def counts(tx: Connection, caller: Caller, filters: Filters, most: int = MOST) -> dict[JobState, int]:
    """Count the jobs that pass, by state, up to `most` of each; states without any are left out."""
    found: dict[JobState, int] = {}
    filters = narrowed(tx, filters)
    for state in filters.state or JobState:
        numbers = [_numbers(caller, each) for each in _alternatives(replace(filters, state=[state]))]
        some = numbers[0] if len(numbers) == 1 else select(union(*numbers).subquery())
        if count := tx.scalar(select(func.count()).select_from(some.limit(most).subquery())):
            found[state] = count
    return found


def newest(tx: Connection, caller: Caller, filters: Filters, looked: int) -> ColumnElement[bool]:
    """Return the condition of the jobs that pass among the newest so many of each state."""
    filters = narrowed(tx, filters)
    text = (filters.q or "").strip()
    # A text that many names have is compared with those that are looked at: to find so many could take all names.
    bare = filters if filters.among is not None else replace(filters, q=None)
    states = [_newest(caller, replace(bare, state=[state]), looked) for state in filters.state or JobState]
    passes = Job.number.in_(union_all(*states))
    return and_(passes, text_search.matches(text)) if text else passes


def _newest(caller: Caller, filters: Filters, looked: int) -> Select[Any]:
    ordered = [_ordered(caller, each, Span(limit=looked - 1)) for each in _alternatives(filters)]
    numbers = union(*(select(each.subquery().c.number) for each in ordered)).subquery()
    some = select(numbers.c.number).order_by(numbers.c.number.desc()).limit(looked)
    return select(some.subquery().c.number)


def narrowed(tx: Connection, filters: Filters) -> Filters:
    """Return filters that name the jobs which the text can match, if it can match few."""
    words = (filters.q or "").strip()
    return replace(filters, among=text_search.candidates(tx, words) if words else None)


def _alternatives(filters: Filters) -> list[Filters]:
    """Return filters that together let the same jobs pass, each by one value of a kind.

    The newest jobs with one value are read from an index in their order; an OR of several would be sorted, all of it.
    """
    states = [[state] for state in filters.state if filters.among is None] or [list(filters.state)]
    tags = [[tag] for tag in dict.fromkeys(filters.tag)] or [[]]
    if len(states) * len(tags) > MOST_ALTERNATIVES:
        return [filters]
    return [replace(filters, state=state, tag=tag) for state in states for tag in tags]


def _by(number: Any, span: Span) -> Any:
    return number.desc() if span.order == "newest" else number.asc()


def _ordered(caller: Caller, filters: Filters, span: Span) -> Select[Any]:
    place = _place(filters)
    query = _numbers(caller, filters)
    if span.cursor is not None:
        last = position(span.cursor)
        query = query.where(place < last if span.order == "newest" else place > last)
    return query.order_by(_by(place, span)).limit(span.offset + span.limit + 1)


def _place(filters: Filters) -> Any:
    """Return the number in the index that the list is read from."""
    if len(filters.tag) == 1 and filters.tag[0]:
        return Tag.number
    return MetricSeries.number if filters.metric else Job.number


def _numbers(caller: Caller, filters: Filters) -> Select[Any]:
    place = _place(filters)
    query: Select[Any] = select(place.label("number")).distinct()
    if filters.among is not None:
        query = query.where(place.in_(filters.among))
    if place is Tag.number:
        query = query.join(Job, Tag.number == Job.number).where(Tag.tag == filters.tag[0])
        filters = replace(filters, tag=())
    elif place is MetricSeries.number:
        first, *others = filters.metric
        query = query.join(Job, MetricSeries.number == Job.number).where(metric_filter.passes(first))
        filters = replace(filters, metric=others)
    return filtered(query, caller, filters)


def position(cursor: str) -> int:
    """Return the number in a cursor that a list has answered; an ``invalid-request`` problem for any other."""
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 18):
        raise field_problem("cursor", "is not one that this list has answered: begin without it")
    return int(cursor)


def filtered(query: Query, caller: Caller, filters: Filters) -> Query:
    """Return a query of jobs with the conditions of those that pass and that the caller may read."""
    query = query.where(readable(caller, Job), *(has_value(wanted) for wanted in filters.metric))
    if filters.state:
        query = query.where(Job.state.in_(filters.state) if len(filters.state) > 1 else Job.state == filters.state[0])
    if filters.user:
        query = query.where(Job.user_id == select(User.id).where(User.name == filters.user).scalar_subquery())
    if filters.project:
        query = query.where(Job.project == filters.project)
    if filters.tag:
        query = query.where(_tagged(filters.tag))
    query = query.where(*_asked(filters))
    if filters.group:
        query = query.where(_in_sweep(filters.group))
    if not filters.trials:
        query = query.where(Job.group_id.is_(None))
    return query


def has_value(wanted: MetricFilter) -> ColumnElement[bool]:
    """Return the condition of jobs whose metric passes."""
    return Job.number.in_(select(MetricSeries.number).where(metric_filter.passes(wanted)))


def _tagged(tags: Sequence[str]) -> ColumnElement[bool]:
    alternatives: list[ColumnElement[bool]] = [Job.id.in_(select(Tag.job_id).where(Tag.tag.in_(tags)))]
    if "" in tags:
        alternatives.append(Job.number.not_in(select(Tag.number)))
    return or_(*alternatives)


def _in_sweep(ref: str) -> ColumnElement[bool]:
    if ref.isascii() and ref.isdigit() and len(ref) <= 18:
        return Job.group_id == select(Group.id).where(Group.number == int(ref)).scalar_subquery()
    return Job.group_id.in_(select(Group.id).where(or_(Group.id == ref, Group.name == ref)))


def _asked(filters: Filters) -> Iterator[ColumnElement[bool]]:
    if words := (filters.q or "").strip():
        yield text_search.matches(words)
    if filters.refs:
        yield _named(filters.refs)


def _named(refs: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition of jobs that are named by number or id."""
    numbers = [int(ref) for ref in refs if ref.isascii() and ref.isdigit() and len(ref) <= 18]
    return or_(Job.number.in_(numbers), Job.id.in_(refs))
