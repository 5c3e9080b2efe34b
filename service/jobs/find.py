"""Lists of jobs: filters and cursors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, ScalarSelect, Select, func, or_, select

from service.db.models import Group, Job, Tag, User
from service.db.records.jobs import JobVersion
from service.errors import field_problem
from service.identity.callers import Caller
from service.identity.visibility import readable
from service.jobs.versions import COLUMNS
from torchyard.states import JobState

MAX_PAGE = 500
Query = TypeVar("Query", bound="Select[*tuple[Any, ...]]")


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters of a list: an empty one lets everything pass, several states or tags are alternatives."""

    state: Sequence[JobState] = ()
    user: str | None = None
    project: str | None = None
    tag: Sequence[str] = ()
    q: str | None = None
    """Part of the name, the number, or the beginning of the id."""
    group: str | None = None
    """Only trials of the sweep with this id or number."""
    trials: bool = True
    """Jobs that belong to a sweep are shown."""


def page(
    tx: Connection, caller: Caller, filters: Filters, cursor: str | None, limit: int
) -> tuple[list[JobVersion], str | None]:
    """Return the versions of the newest jobs that pass, of the caller's alone, and the cursor of the next page."""
    query = _filtered(select(*COLUMNS), caller, filters).order_by(Job.number.desc()).limit(limit + 1)
    if cursor is not None:
        query = query.where(Job.number < position(cursor))
    rows = JobVersion.all(tx.execute(query))
    more = len(rows) > limit
    rows = rows[:limit]
    return rows, str(rows[-1].number) if more else None


def counts(tx: Connection, caller: Caller, filters: Filters) -> dict[JobState, int]:
    """Count the jobs that pass, by state; states without any are left out."""
    query = _filtered(select(Job.state, func.count()), caller, filters).group_by(Job.state).order_by(Job.state)
    return {JobState(state): count for state, count in tx.execute(query)}


def position(cursor: str) -> int:
    """Return the number in a cursor that a list has answered; an ``invalid-request`` problem for any other."""
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 18):
        raise field_problem("cursor", "is not one that this list has answered: begin without it")
    return int(cursor)


def _filtered(query: Query, caller: Caller, filters: Filters) -> Query:
    query = query.where(readable(caller, Job))
    if filters.state:
        query = query.where(Job.state.in_(filters.state))
    if filters.user:
        query = query.where(Job.user_id == select(User.id).where(User.name == filters.user).scalar_subquery())
    if filters.project:
        query = query.where(Job.project == filters.project)
    if filters.tag:
        query = query.where(Job.id.in_(select(Tag.job_id).where(Tag.tag.in_(filters.tag))))
    if filters.q:
        query = query.where(_matches(filters.q.strip()))
    if filters.group:
        query = query.where(Job.group_id == _group(filters.group))
    if not filters.trials:
        query = query.where(Job.group_id.is_(None))
    return query


def _group(ref: str) -> ScalarSelect[str] | str:
    if ref.isascii() and ref.isdigit() and len(ref) <= 18:
        return select(Group.id).where(Group.number == int(ref)).scalar_subquery()
    return ref


def _matches(words: str) -> ColumnElement[bool]:
    alternatives = [Job.name.icontains(words, autoescape=True), Job.id.startswith(words, autoescape=True)]
    if words.isascii() and words.isdigit() and len(words) <= 18:
        alternatives.append(Job.number == int(words))
    return or_(*alternatives)
