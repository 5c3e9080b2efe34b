"""Disk that the running attempts of each user take on this node together, and which of them ends for it."""

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

from torchyard.failures import fingerprints
from torchyard.ids import AttemptId
from torchyard.quantities import format_size
from worker.attempts.folder import AttemptFolder

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class AttemptDisk:
    """Disk that one running attempt takes."""

    attempt: AttemptId
    user: str
    taken: int
    grown: int
    """Bytes since the look before; all of them at the first."""


def choose(usages: Collection[AttemptDisk], user: str, limit: int) -> tuple[AttemptDisk, int] | None:
    """Return which attempt of a user ends, and what all of theirs take; None if that is within the limit.

    It is the one that has grown most lately, the largest of those that have grown alike: what has long been there is
    not ended for what another writes now.
    """
    own = [each for each in usages if each.user == user]
    total = sum(each.taken for each in own)
    return (max(own, key=lambda each: (each.grown, each.taken, each.attempt)), total) if total > limit else None


class UserDisk:
    """The disk that the running attempts of this node took when they were looked at last; safe from many threads."""

    def __init__(self, limit: Callable[[], int | None] = lambda: None) -> None:
        self.limit = limit
        """Bytes of disk that the running attempts of one user may take together; None: no limit."""
        self._usages: dict[AttemptId, AttemptDisk] = {}
        self._ending: set[AttemptId] = set()
        self._lock = threading.Lock()

    def report(self, folder: AttemptFolder, user: str, taken: int) -> None:
        """Take note of what an attempt takes; have the shim of one end it if its user's take too much.

        One that ends counts no more: its folder goes. Raises OSError.
        """
        limit, attempt = self.limit(), folder.attempt_id
        with self._lock:
            self._forget_ended(folder)
            if limit is None or attempt in self._ending:
                return
            before = self._usages.get(attempt)
            grown = taken - (before.taken if before else 0)
            self._usages[attempt] = AttemptDisk(attempt=attempt, user=user, taken=taken, grown=grown)
            if (chosen := choose(self._usages.values(), user, limit)) is None:
                return
            self._end(AttemptFolder(folder.attempts, chosen[0].attempt), chosen[0], chosen[1], limit)

    def _end(self, folder: AttemptFolder, usage: AttemptDisk, total: int, limit: int) -> None:
        words = (
            f"the running jobs of {usage.user} took {format_size(total)} of disk on this node together, and those of a "
            f"user may take {format_size(limit)} (TORCHYARD_USER_DISK_LIMIT); this one took {format_size(usage.taken)} "
            "and had grown most lately"
        )
        logger.warning("%s: %s", usage.attempt, words)
        folder.write_failure(fingerprints.DISK_LIMIT, words)
        del self._usages[usage.attempt]
        self._ending.add(usage.attempt)

    def _forget_ended(self, folder: AttemptFolder) -> None:
        known = {*self._usages, *self._ending}
        gone = {each for each in known if not _runs(AttemptFolder(folder.attempts, each))}
        self._usages = {attempt: usage for attempt, usage in self._usages.items() if attempt not in gone}
        self._ending -= gone


def _runs(folder: AttemptFolder) -> bool:
    return folder.path.exists() and not folder.has_result()
