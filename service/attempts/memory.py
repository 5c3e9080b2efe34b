"""Cache of what never changes about an attempt, and what ingest remembers of it between requests."""

import threading
from collections.abc import Hashable
from dataclasses import dataclass

from sqlalchemy import bindparam, select

from service.db.engine import Database
from service.db.models import Attempt, Member
from service.errors import ProblemError, not_found
from service.infra.lru_cache import LruCache
from torchyard.ids import AttemptId, JobId

_MEMBERS = (
    select(Attempt.id, Attempt.job_id, Attempt.number, Member.node)
    .join(Member, Member.attempt_id == Attempt.id)
    .where(Attempt.id == bindparam("attempt"))
    .order_by(Member.node_rank)
)


@dataclass(frozen=True, kw_only=True)
class AttemptIdentity:
    """An attempt, as ingest needs to know it."""

    id: AttemptId
    job_id: JobId
    number: int
    nodes: tuple[str, ...]
    """Node of each member, by node rank."""


class Memory:
    """Cache of what would be read again with every batch. Nothing in it ever changes in the database."""

    def __init__(self) -> None:
        self.facts: LruCache[str, AttemptIdentity] = LruCache(4096)
        #: Ids of series by (attempt, stream): a dictionary of names, replaced and never changed.
        self.series: LruCache[tuple[str, str], dict[str, int]] = LruCache(4096)
        self._locks = [threading.Lock() for _ in range(64)]

    def lock(self, *key: Hashable) -> threading.Lock:
        """A lock for one stream (shared with a few others)."""
        return self._locks[hash(key) % len(self._locks)]


def facts(db: Database, memory: Memory, attempt_id: AttemptId) -> AttemptIdentity:
    """The attempt; a ``not-found`` problem if there is none."""
    known = memory.facts.get(attempt_id)
    if known is None:
        known = _read(db, attempt_id)
        memory.facts.put(attempt_id, known)
    return known


def of_node(db: Database, memory: Memory, attempt_id: AttemptId, node: str | None) -> AttemptIdentity:
    """The attempt, for a node that is part of it; ``forbidden`` for any other."""
    known = facts(db, memory, attempt_id)
    if node not in known.nodes:
        raise ProblemError("forbidden", f"Attempt {attempt_id} has no part on node {node}: use that node's own token.")
    return known


def _read(db: Database, attempt_id: AttemptId) -> AttemptIdentity:
    with db.read() as tx:
        rows = tx.execute(_MEMBERS, {"attempt": attempt_id}).all()
    if not rows:
        raise not_found("attempt", attempt_id)
    first = rows[0]
    return AttemptIdentity(id=first.id, job_id=first.job_id, number=first.number, nodes=tuple(row.node for row in rows))
