"""Queries of sweeps for the API: each reads in one transaction of its own.

A sweep is named by its id or number; ``not-found`` for an unknown one. `known` is the client's If-None-Match.
"""

from dataclasses import dataclass

from service.db.engine import Database
from service.db.records.jobs import ShownGroup
from service.infra.etags import Tagged, names
from service.jobs import groups
from service.jobs.find import Filters
from torchyard import api


@dataclass(frozen=True, kw_only=True)
class TrialsQuery:
    """A page of a sweep's trials: ordered by number, or by a metric with the best first."""

    metric: str | None
    mode: groups.Mode | None
    best_first: bool
    cursor: str | None
    limit: int


def page(db: Database, filters: Filters, cursor: str | None, limit: int) -> api.Page[api.Group]:
    """Return a page of sweeps, the newest first."""
    with db.read() as tx:
        rows, following = groups.page(tx, filters, cursor, limit)
        return api.Page[api.Group](items=groups.present_all(tx, rows), next=following)


def group(db: Database, ref: str, metric: str | None, mode: groups.Mode | None, known: str | None) -> Tagged[api.Group]:
    """Return a sweep, with its best trial by a metric."""
    with db.read() as tx:
        found = groups.find(tx, ref)
        current = groups.tag(tx, found, metric, mode)
        if names(known, current):
            return Tagged(current, None)
        return Tagged(current, groups.present(tx, found, groups.objective(tx, found, metric, mode)))


def trials(db: Database, ref: str, query: TrialsQuery, known: str | None) -> Tagged[api.Page[api.Job]]:
    """Return a page of a sweep's trials."""
    with db.read() as tx:
        found = groups.find(tx, ref)
        asked = (query.metric, query.mode, query.best_first, query.cursor, query.limit)
        current = groups.tag(tx, found, *asked)
        if names(known, current):
            return Tagged(current, None)
        by = groups.objective(tx, found, query.metric, query.mode)
        items, following = groups.trials(
            tx, found, by, best_first=query.best_first, cursor=query.cursor, limit=query.limit
        )
    return Tagged(current, api.Page[api.Job](items=items, next=following))


def changed(db: Database, found: ShownGroup) -> Tagged[api.Group]:
    """Return a sweep after a change."""
    with db.read() as tx:
        return Tagged(groups.tag(tx, found, None, None), groups.present(tx, found))
