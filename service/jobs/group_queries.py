"""Queries of sweeps for the API: each reads in one transaction of its own.

A sweep is named by its id or number; ``not-found`` for one that is unknown or that the caller may not read. `known` is
the client's If-None-Match.
"""

from dataclasses import dataclass

from service.db.engine import Database
from service.db.records.jobs import ShownGroup
from service.identity.callers import Caller
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


def page(db: Database, caller: Caller, filters: Filters, cursor: str | None, limit: int) -> api.Page[api.Group]:
    """Return a page of sweeps, the newest first."""
    with db.read() as tx:
        rows, following = groups.page(tx, caller, filters, cursor, limit)
        return api.Page[api.Group](items=groups.present_all(tx, rows), next=following)


def group(
    db: Database, caller: Caller, ref: str, metric: str | None, mode: groups.Mode | None, known: str | None
) -> Tagged[api.Group]:
    """Return a sweep, with its best trial by a metric."""
    with db.read() as tx:
        found = groups.find(tx, ref, caller)
        current = groups.tag(tx, found, caller, metric, mode)
        if names(known, current):
            return Tagged(current, None)
        return Tagged(current, groups.present(tx, found, caller, groups.objective(tx, found, metric, mode)))


def trials(db: Database, caller: Caller, ref: str, query: TrialsQuery, known: str | None) -> Tagged[api.Page[api.Job]]:
    """Return a page of a sweep's trials."""
    with db.read() as tx:
        found = groups.find(tx, ref, caller)
        asked = (query.metric, query.mode, query.best_first, query.cursor, query.limit)
        current = groups.tag(tx, found, caller, *asked)
        if names(known, current):
            return Tagged(current, None)
        by = groups.objective(tx, found, query.metric, query.mode)
        items, following = groups.trials(
            tx, found, by, caller, best_first=query.best_first, cursor=query.cursor, limit=query.limit
        )
    return Tagged(current, api.Page[api.Job](items=items, next=following))


def changed(db: Database, caller: Caller, found: ShownGroup) -> Tagged[api.Group]:
    """Return a sweep after a change."""
    with db.read() as tx:
        return Tagged(groups.tag(tx, found, caller, None, None), groups.present(tx, found, caller))
