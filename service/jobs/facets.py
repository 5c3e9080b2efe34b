"""Facets of a list of jobs: how many of them are whose, of which project or sweep, or have which tag."""

from collections import Counter, defaultdict
from typing import Any

from sqlalchemy import Connection, func, select

from service.db.models import Group, Job, Tag, User
from service.identity.callers import Caller
from service.jobs import find
from service.jobs.find import Filters
from torchyard import api
from torchyard.states import JobState

#: Values that are told at most, those with the most jobs first.
MOST = 500
#: Jobs of each state that are looked at, the newest: a long history costs nothing.
LOOKED = 500


def load(tx: Connection, caller: Caller, filters: Filters, by: api.FacetKind) -> list[api.Facet]:
    """Return the values that the newest jobs of a list have, with jobs by state; "" for those that have none.

    A job with several tags counts to each of them.
    """
    counts: defaultdict[str, Counter[JobState]] = defaultdict(Counter)
    column = _COLUMNS[by]
    looked = find.newest(tx, caller, filters, LOOKED)
    query = select(column, Job.state, func.count()).select_from(Job).where(looked.passes)
    if by == "tag":
        query = query.outerjoin(Tag, Tag.number == Job.number)
    for value, state, jobs in tx.execute(query.group_by(column, Job.state)):
        counts[value or ""][JobState(state)] += jobs
    ordered = sorted(counts, key=lambda value: (-counts[value].total(), value))[:MOST]
    titles = _titles(tx, by, ordered)
    return [
        api.Facet(
            value=titles[value][0],
            title=titles[value][1],
            states=dict(sorted(counts[value].items())),
            more=looked.more,
        )
        for value in ordered
        if value in titles
    ]


_COLUMNS: dict[api.FacetKind, Any] = {
    "user": Job.user_id,
    "project": Job.project,
    "sweep": Job.group_id,
    "tag": Tag.tag,
}


def _titles(tx: Connection, by: api.FacetKind, values: list[str]) -> dict[str, tuple[str, str]]:
    """Return by what lists are filtered for each value, and what people call it."""
    if by == "user":
        users = tx.execute(select(User.id, User.name).where(User.id.in_(values)))
        return {row.id: (row.name, row.name) for row in users}
    if by == "sweep":
        sweeps = tx.execute(select(Group.id, Group.number, Group.name).where(Group.id.in_(values)))
        return {"": ("", "")} | {row.id: (str(row.number), row.name) for row in sweeps}
    return {value: (value, value) for value in values}
