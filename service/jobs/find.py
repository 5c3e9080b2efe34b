"""Lists of jobs: filters and cursors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    column,
    exists,
    func,
    or_,
    select,
    union,
    union_all,
)

from service.db.models import Group, Job, MetricSeries, Tag, User
from service.db.number_lists import one_of
from service.db.records.jobs import JobVersion
from service.errors import field_problem
from service.identity.callers import Caller
from service.identity.visibility import readable
from service.jobs import metric_filter, text_search
from service.jobs.metric_filter import MetricFilter
from service.jobs.versions import COLUMNS
from torchyard.states import JobState
from torchyard.translatable import TranslatableText

MAX_PAGE = 500
#: Jobs of a state that are counted at most: beyond it a list has "more than" so many.
MOST = 10_000
#: Queries that a list is put together from at most.
MOST_ALTERNATIVES = 32
#: Of a search the facets have so many times more jobs, of all states together.
STATES = 4
#: How many jobs of a list can be passed over at most: to go on from a cursor costs the same everywhere.
MAX_OFFSET = 20_000
#: A condition that no more jobs meet is looked up first.
FEW = 5_000
#: Jobs of which a page of a search looks at the names and values at most, in the order of numbers, where one index has
#: them all; and of one user, project or tag.
LOOKED, LOOKED_ONE_BY_ONE = 20_000, 5_000
Order = Literal["newest", "oldest"]
Reach = tuple[Literal["user", "project"], str]
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
    before: int | None = None
    """Only jobs with smaller numbers."""
    after: int | None = None
    """Only jobs with larger numbers."""
    among: Sequence[int] | None = None
    """Numbers of all jobs that can pass, where they are few (`narrowed`)."""
    reach: Reach | None = None
    """Of the jobs that the caller may read only those of this user (by id) or project."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Part of a list: at most `limit` jobs after the cursor's, or after the first `offset` ones."""

    limit: int
    cursor: str | None = None
    offset: int = 0
    order: Order = "newest"


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The number of jobs that pass, by state (but for states that none is in), and the states with perhaps more."""

    states: dict[JobState, int]
    more: Sequence[JobState]


def page(tx: Connection, caller: Caller, filters: Filters, span: Span) -> tuple[list[JobVersion], str | None]:
    """Return the versions of the jobs that pass, of the caller's alone, and the cursor of the next page.

    Where only so many jobs were looked at, a page may have few jobs, or none, and a cursor all the same.
    """
    limit = span.limit
    filters, end = bounded(tx, caller, _after(filters, span), span.order)
    alternatives = _alternatives(caller, filters)
    # A job may have several of the tags, and be the caller's as well as of their project.
    together = union if len(filters.tag) > 1 or alternatives[0].reach else union_all
    numbers = together(*(select(_ordered(caller, each, span).subquery().c.number) for each in alternatives))
    some = select(numbers.subquery()).order_by(_by(column("number"), span.order)).limit(limit + 1).offset(span.offset)
    query = select(*COLUMNS).where(Job.number.in_(select(some.subquery().c.number)))
    rows = JobVersion.all(tx.execute(query.order_by(_by(Job.number, span.order))))
    more = len(rows) > limit
    rows = rows[:limit]
    return rows, str(rows[-1].number) if more else end


def counts(tx: Connection, caller: Caller, filters: Filters, most: int = MOST) -> Counts:
    """Count the jobs that pass, by state, up to `most` of each, and in a search among those that a page looks at."""
    states = list(filters.state or JobState)
    filters, end = bounded(tx, caller, replace(filters, state=states))
    if filters.among is not None or end is not None:
        found = _counts_at_once(tx, caller, filters)
        more = [state for state in states if found.get(state, 0) > most or _has_older(tx, state, end)]
    else:
        found = {state: _count(tx, caller, replace(filters, state=[state]), most) for state in states}
        more = [state for state, count in found.items() if count > most]
    return Counts(states={state: min(count, most) for state, count in found.items() if count}, more=more)


def _counts_at_once(tx: Connection, caller: Caller, filters: Filters) -> dict[JobState, int]:
    filters = _of_any_state(filters)
    # The limit, which is never reached, keeps databases from reading state by state instead.
    query = _numbers(caller, filters).add_columns(Job.state).order_by(_place(filters)).limit(10**6)
    found = query.subquery()
    counted = select(found.c.state, func.count(found.c.number.distinct())).group_by(found.c.state)
    return {JobState(state): count for state, count in tx.execute(counted)}


def _of_any_state(filters: Filters) -> Filters:
    return replace(filters, state=()) if set(filters.state) == set(JobState) else filters


def _count(tx: Connection, caller: Caller, filters: Filters, most: int) -> int:
    """Count the jobs of one state, up to one more than `most`."""
    each = [_numbers(caller, one).distinct().limit(most + 1).subquery() for one in _alternatives(caller, filters)]
    numbers = (union_all if len(each) == 1 else union)(*(select(one.c.number) for one in each)).subquery()
    some = select(numbers.c.number).limit(most + 1)
    return tx.scalar(select(func.count()).select_from(some.subquery())) or 0


def _has_older(tx: Connection, state: JobState, end: str | None) -> bool:
    older = select(Job.number).where(Job.state == state, Job.number < int(end or 0))
    return end is not None and tx.scalar(older.limit(1)) is not None


@dataclass(frozen=True, kw_only=True)
class Newest:
    """The newest jobs of each state: the condition of those that pass, and whether there are more."""

    passes: ColumnElement[bool]
    more: bool


def newest(tx: Connection, caller: Caller, filters: Filters, looked: int) -> Newest:
    """Return which jobs pass among the newest so many of each state; in a search, among those that a page looks at."""
    states = list(filters.state or JobState)
    filters, end = bounded(tx, caller, replace(filters, state=states))
    if filters.among is not None or end is not None:
        most = STATES * looked
        numbers = list(tx.scalars(_newest(caller, _of_any_state(filters), most + 1)))
        return Newest(passes=one_of(Job.number, numbers[:most]), more=end is not None or len(numbers) > most)
    parts = [replace(filters, state=[state]) for state in states]
    passes = Job.number.in_(union_all(*(_newest(caller, each, looked) for each in parts)))
    one_more = (_newest(caller, each, looked + 1).subquery() for each in parts)
    found = tx.execute(select(*(select(func.count()).select_from(each).scalar_subquery() for each in one_more))).one()
    return Newest(passes=passes, more=max(found) > looked)


def _newest(caller: Caller, filters: Filters, looked: int) -> Select[Any]:
    ordered = [_ordered(caller, each, Span(limit=looked - 1)) for each in _alternatives(caller, filters)]
    numbers = union(*(select(each.subquery().c.number) for each in ordered)).subquery()
    some = select(numbers.c.number).order_by(numbers.c.number.desc()).limit(looked)
    return select(some.subquery().c.number)


def bounded(tx: Connection, caller: Caller, filters: Filters, order: Order = "newest") -> tuple[Filters, str | None]:
    """Return filters whose list costs little to read, and the cursor at which to go on where that leaves jobs out.

    One condition has an index in the order of the list. Of several that one which few jobs meet names them; where
    many meet each, only the next jobs of the list are looked at.
    """
    if not _is_search(caller, filters):
        return filters, None
    filters = narrowed(tx, caller, filters)
    end = None if filters.among is not None else _end(tx, filters, order)
    if end is None:
        return filters, None
    if order == "newest":
        return replace(filters, after=end), str(end + 1)
    return replace(filters, before=end), str(end - 1)


def _is_search(caller: Caller, filters: Filters) -> bool:
    """Return true where no index has the jobs that pass in their order."""
    named = [filters.user, filters.project, filters.group, *filters.tag[:1]]
    conditions = sum(bool(each) for each in named)
    in_order = conditions <= 1 and not (filters.state and (filters.tag or filters.group))
    return bool((filters.q or "").strip() or filters.metric or "" in filters.tag) or not (
        in_order and filters.trials and _reads_all(caller, filters, conditions)
    )


def _reads_all(caller: Caller, filters: Filters, conditions: int) -> bool:
    """Return true if the caller may read all jobs that pass, or those that they may are found one project at a time."""
    if caller.admin or filters.user == caller.name or filters.project in caller.projects:
        return True
    return not conditions and len(caller.projects) < MOST_ALTERNATIVES


def narrowed(tx: Connection, caller: Caller, filters: Filters) -> Filters:
    """Return filters that name the jobs which can pass, if one of their conditions leaves few."""
    words = (filters.q or "").strip()
    among = text_search.candidates(tx, words) if words else None
    for numbers in _conditions(caller, filters) if among is None else ():
        query = within(numbers, numbers.selected_columns[0], filters)
        if tx.scalar(query.offset(FEW).limit(1)) is None:  # numbers of too many are not sent at all
            among = list(tx.scalars(query))
            break
    return replace(filters, among=among)


def _conditions(caller: Caller, filters: Filters) -> Iterator[Select[Any]]:
    """Yield the numbers of the jobs that meet each of the conditions, from an index each."""
    for wanted in filters.metric:
        yield select(MetricSeries.number).where(metric_filter.compares(wanted))
    if filters.tag and "" not in filters.tag:
        yield select(Tag.number).where(Tag.tag.in_(filters.tag))
    if filters.group:
        yield select(Job.number).where(_in_sweep(filters.group))
    states = () if set(filters.state) == set(JobState) else filters.state
    if states:
        yield select(Job.number).where(Job.state.in_(states))
    state = [Job.state == filters.state[0]] if len(filters.state) == 1 else []
    if filters.project:
        yield select(Job.number).where(Job.project == filters.project, *state)
    if filters.user:
        yield select(Job.number).where(Job.user_id == _user(filters.user), *state)
    if not caller.admin:
        yield select(Job.number).where(readable(caller, Job), *state)


def _end(tx: Connection, filters: Filters, order: Order) -> int | None:
    """Return the number of the first job that is not looked at; None if all are."""
    if (narrow := next(_in_order(filters), None)) is not None:
        place = narrow.selected_columns[0]
        query = within(narrow, place, filters).order_by(_by(place, order))
        first_left_out: int | None = tx.scalar(query.offset(LOOKED_ONE_BY_ONE).limit(1))
        return first_left_out
    last = tx.scalar(select(func.max(Job.number))) or 0
    if order == "newest":
        end = min(last + 1, filters.before or last + 1) - 1 - LOOKED
        return end if end > (filters.after or 0) else None
    end = (filters.after or 0) + 1 + LOOKED
    return end if end < (filters.before or last + 1) else None


def _in_order(filters: Filters) -> Iterator[Select[Any]]:
    """Yield the numbers of the jobs that meet a condition which has an index in the order of the list."""
    if len(filters.tag) == 1 and filters.tag[0]:
        yield select(Tag.number).where(Tag.tag == filters.tag[0])
    if filters.project:
        yield select(Job.number).where(Job.project == filters.project)
    if filters.user:
        yield select(Job.number).where(Job.user_id == _user(filters.user))


def within(query: Query, place: Any, filters: Filters) -> Query:
    """Return the query with the bounds of what passes; `place` is the number that it is placed by."""
    if filters.before is not None:
        query = query.where(place < filters.before)
    return query if filters.after is None else query.where(place > filters.after)


def _after(filters: Filters, span: Span) -> Filters:
    """Return filters with the cursor among their bounds."""
    if span.cursor is None:
        return filters
    last = position(span.cursor)
    if span.order == "newest":
        return replace(filters, before=last if filters.before is None else min(last, filters.before))
    return replace(filters, after=max(last, filters.after or 0))


def _alternatives(caller: Caller, filters: Filters) -> list[Filters]:
    """Return filters that together let the same jobs pass, each by one value of a kind.

    The newest jobs with one value are read from an index in their order; an OR of several would be sorted, all of it.
    """
    if filters.among is not None:
        return [filters]
    states = [[state] for state in filters.state] or [[]]
    tags = [[tag] for tag in dict.fromkeys(filters.tag)] or [[]]
    reaches: list[Reach | None] = [None]
    if not (caller.admin or filters.user or filters.project or filters.tag or filters.group):
        reaches = [("user", caller.user_id), *(("project", project) for project in sorted(caller.projects))]
    if len(states) * len(tags) * len(reaches) > MOST_ALTERNATIVES:
        return [filters]
    return [
        replace(filters, state=state, tag=tag, reach=reach) for state in states for tag in tags for reach in reaches
    ]


def _by(number: Any, order: Order) -> Any:
    return number.desc() if order == "newest" else number.asc()


def _ordered(caller: Caller, filters: Filters, span: Span) -> Select[Any]:
    place = _place(filters)
    ordered = _numbers(caller, filters).order_by(_by(place, span.order))
    # A metric has a series for each rank and attempt.
    ordered = ordered.distinct() if place is MetricSeries.number else ordered
    return ordered.limit(span.offset + span.limit + 1)


def _place(filters: Filters) -> Any:
    """Return the number in the index that the list is read from."""
    if len(filters.tag) == 1 and filters.tag[0]:
        return Tag.number
    return MetricSeries.number if filters.metric else Job.number


def _numbers(caller: Caller, filters: Filters) -> Select[Any]:
    place = _place(filters)
    query: Select[Any] = within(select(place.label("number")), place, filters)
    filters = replace(filters, before=None, after=None)
    if filters.among is not None:
        query = query.where(one_of(place, filters.among))
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
        raise field_problem(
            "cursor",
            TranslatableText("list-cursor", "is not one that this list has answered: begin without it"),
        )
    return int(cursor)


def filtered(query: Query, caller: Caller, filters: Filters) -> Query:
    """Return a query of jobs with the conditions of those that pass and that the caller may read."""
    query = within(query, Job.number, filters).where(_reached(caller, filters.reach))
    query = query.where(*(has_value(wanted) for wanted in filters.metric))
    if filters.state:
        query = query.where(Job.state.in_(filters.state) if len(filters.state) > 1 else Job.state == filters.state[0])
    if filters.user:
        query = query.where(Job.user_id == _user(filters.user))
    if filters.project:
        query = query.where(Job.project == filters.project)
    if filters.tag:
        query = query.where(tagged(filters.tag))
    query = query.where(*_asked(filters))
    if filters.group:
        query = query.where(_in_sweep(filters.group))
    if not filters.trials:
        query = query.where(Job.group_id.is_(None))
    return query


def has_value(wanted: MetricFilter) -> ColumnElement[bool]:
    """Return the condition of jobs whose metric passes."""
    return exists().where(MetricSeries.number == Job.number, metric_filter.passes(wanted)).correlate(Job)


def _reached(caller: Caller, reach: Reach | None) -> ColumnElement[bool]:
    if reach is None:
        return readable(caller, Job)
    return (Job.user_id if reach[0] == "user" else Job.project) == reach[1]


def _user(name: str) -> ScalarSelect[str]:
    return select(User.id).where(User.name == name).scalar_subquery()


def tagged(tags: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition of jobs that have one of the tags; "" is of those that have none."""
    named = [tag for tag in tags if tag]
    of_job = exists().where(Tag.number == Job.number).correlate(Job)
    has = [of_job.where(Tag.tag.in_(named))] if named else []
    return or_(*has, *([~of_job] if "" in tags else []))


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
