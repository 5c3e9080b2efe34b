"""Refused requests on their way to the audit: the same one again within a minute is counted, not stored again.

A program with a token that has ended asks every second, and a stranger as often as they like: neither may fill the
audit, nor cost a write for each request.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from service.db.engine import Database
from service.identity import audit
from torchyard.ids import new_id

#: Seconds for which the same refusal is counted in one entry.
WINDOW_S = 60.0
#: Subjects of one user in a window that have entries of their own; whatever else they are refused is counted by action.
MAX_SUBJECTS = 20
#: Entries of one window; whatever else is refused then is counted in one more.
MAX_ENTRIES = 200
OTHERS = "(others)"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused request, by all that tells it from others."""

    user_id: str
    """Empty without a token that counts."""
    address: str | None
    action: str
    subject: str
    status: int


@dataclass(slots=True)
class _StoredRefusal:
    id: str
    until: float
    uncounted: int = 0
    """Repetitions that are not stored yet."""


@dataclass(frozen=True, slots=True)
class Noted:
    """Entry to store of a refusal, and counts of earlier ones."""

    new: str | None
    refusal: Refusal
    counts: dict[str, int]
    """How often more, by the id of the entry."""


class Refusals:
    """Refusals of the last minute, in memory; safe from many threads."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._entries: dict[Refusal, _StoredRefusal] = {}
        self._lock = threading.Lock()

    def note(self, refusal: Refusal) -> Noted:
        """Count a refusal; return what is to be stored now."""
        now = self._monotonic()
        with self._lock:
            counts = self._close(now)
            if refusal not in self._entries and self._subjects(refusal.user_id) >= MAX_SUBJECTS:
                refusal = replace(refusal, subject=OTHERS)
            if refusal not in self._entries and len(self._entries) >= MAX_ENTRIES:
                refusal = Refusal("", None, OTHERS, OTHERS, refusal.status)
            entry = self._entries.get(refusal)
            if entry is not None:
                entry.uncounted += 1
                return Noted(None, refusal, counts)
            entry = self._entries[refusal] = _StoredRefusal(new_id("audit"), now + WINDOW_S)
            return Noted(entry.id, refusal, counts)

    def _subjects(self, user_id: str) -> int:
        return len({each.subject for each in self._entries if each.user_id == user_id != "" and each.subject != OTHERS})

    def take_counts(self) -> dict[str, int]:
        """Take all repetitions that are not stored yet, by the id of their entry."""
        with self._lock:
            return self._take(self._entries)

    def _close(self, now: float) -> dict[str, int]:
        over = {refusal: entry for refusal, entry in self._entries.items() if entry.until <= now}
        for refusal in over:
            del self._entries[refusal]
        return self._take(over)

    @staticmethod
    def _take(entries: dict[Refusal, _StoredRefusal]) -> dict[str, int]:
        counts = {entry.id: entry.uncounted for entry in entries.values() if entry.uncounted}
        for entry in entries.values():
            entry.uncounted = 0
        return counts


def store(db: Database, noted: Noted, now: int) -> None:
    """Store a refusal, as far as there is something to store."""
    if noted.new is None and not noted.counts:
        return
    with db.write() as tx:
        if noted.new is not None:
            of = noted.refusal
            columns = {"user_id": of.user_id, "address": of.address, "action": of.action, "subject": of.subject}
            audit.insert_entry(tx, now, id=noted.new, status=of.status, **columns)
        for entry, times in noted.counts.items():
            audit.add_times(tx, entry, times)


def flush(db: Database, refusals: Refusals) -> None:
    """Store all repetitions, before the audit is read and at the end."""
    counts = refusals.take_counts()
    if counts:
        with db.write() as tx:
            for entry, times in counts.items():
                audit.add_times(tx, entry, times)
