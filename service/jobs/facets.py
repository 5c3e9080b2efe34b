"""Facets of a list of jobs: how many of them are whose, of which project or sweep, or have which tag."""

from collections import defaultdict
from typing import Any, cast

from sqlalchemy import Connection, Select, func, literal, select

from service.db.models import Group, Job, Tag, User
from service.identity.callers import Caller
from service.jobs.find import Filters, filtered
from torchyard import api
from torchyard.states import JobState

#: Values that are told at most, those with the most jobs first.
MOST = 500


def load(tx: Connection, caller: Caller, filters: Filters, by: api.FacetKind) -> list[api.Facet]:
    """Return the values that the jobs of a list have, with jobs by state; "" for those that have none.

    A job with several tags counts to each of them.
    """
    counts: defaultdict[str, dict[JobState, int]] = defaultdict(dict)
    for query in _queries(by):
        grouped = filtered(query, caller, filters)
        for value, state, jobs in tx.execute(grouped):
            counts[value or ""][JobState(state)] = jobs
    ordered = sorted(counts, key=lambda value: (-sum(counts[value].values()), value))[:MOST]
    titles = _titles(tx, by, ordered)
    return [
        api.Facet(value=titles[value][0], title=titles[value][1], states=counts[value])
        for value in ordered
        if value in titles
    ]


def _queries(by: api.FacetKind) -> list[Select[Any]]:
    if by == "tag":
        tag, none = cast("Any", Tag.tag), cast("Any", literal(""))
        tagged = select(tag, Job.state, func.count()).join(Job, Job.number == Tag.number)
        untagged = select(none, Job.state, func.count()).where(Job.number.not_in(select(Tag.number)))
        return [tagged.group_by(tag, Job.state), untagged.group_by(Job.state)]
    column: Any = {"user": Job.user_id, "project": Job.project, "sweep": Job.group_id}[by]
    return [select(column, Job.state, func.count()).group_by(column, Job.state)]


def _titles(tx: Connection, by: api.FacetKind, values: list[str]) -> dict[str, tuple[str, str]]:
    """Return by what lists are filtered for each value, and what people call it."""
    if by == "user":
        users = tx.execute(select(User.id, User.name).where(User.id.in_(values)))
        return {row.id: (row.name, row.name) for row in users}
    if by == "sweep":
        sweeps = tx.execute(select(Group.id, Group.number, Group.name).where(Group.id.in_(values)))
        return {"": ("", "")} | {row.id: (str(row.number), row.name) for row in sweeps}
    return {value: (value, value) for value in values}
