"""Upload of a running job's files once they have been still for a while.

A lost node then loses little. Rounds are in the background, ever rarer while nothing changes, and rest for fifty times
as long as they worked.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from torchyard import wire
from worker.attempts import tree
from worker.attempts.tree import BaselineManifest, JobFile, Key, Stamp
from worker.background import BackgroundTask, Spawn
from worker.exceptions import WorkerError
from worker.forward import reports
from worker.forward.written import OutputLimits, WrittenFiles, is_lost, is_work

RESTS: Final = 50
SLOWEST_S: Final = 600.0
_SLOWER: Final = 1.5

logger = logging.getLogger(__name__)


class Growing:
    """The rounds of one attempt. `report` sends; `spawn` runs a function in the background."""

    def __init__(
        self,
        written: WrittenFiles,
        report: Callable[[wire.OutputReport], wire.Missing],
        limits: OutputLimits,
        spawn: Spawn,
    ) -> None:
        self._written = written
        self._report = report
        self._limits = limits
        self._task = BackgroundTask(spawn)
        self._pause = limits.every_s
        self._due = time.monotonic() + self._pause
        self._seen: dict[Key, Stamp] = {}
        #: What was reported, with its hashes.
        self.sent: dict[Key, str] = {}

    def pump(self) -> bool:
        """Start a round if one is due; there is never more to do at once."""
        if self._task.idle and time.monotonic() >= self._due:
            self._task.start(self._round)
        return False

    def rest(self, seconds: float) -> bool:
        """Return whether no round is under way, after waiting for that at most so long."""
        return self._task.wait(seconds)

    def _round(self) -> None:
        began = time.monotonic()
        try:
            found = self.bring()
            self._pause = self._limits.every_s if found else min(self._pause * _SLOWER, SLOWEST_S)
        except (OSError, WorkerError) as error:
            logger.info("%s: its files are brought later: %s", self._written.folder.name, error)
        except Exception:
            logger.exception("%s: a fault in TorchYard", self._written.folder.name)
        finally:
            now = time.monotonic()
            self._due = now + max(self._pause, RESTS * (now - began))

    def bring(self) -> int:
        """One round; returns how many files it brought. The store has each before it is reported, so a node that is
        lost in between takes no older version along.
        """
        manifest = tree.read(self._written.folder)
        found = list(tree.Walk(self._written.folder, self._written.owner, manifest).files())
        still = [each for each in found if self._is_still(each) and not (manifest and manifest.is_untouched(each))]
        self._seen = {each.key: each.stamp for each in found}
        if not still:
            return 0
        self._written.room = self._report(wire.OutputReport(files=[])).room
        brought = [
            (each, sha256)
            for each in self._limits.divide(still)[0]
            if (sha256 := self._changed(each, manifest)) and self._written.send(each, sha256, ended=False)
        ]
        saved = any(is_work(each, sha256, manifest) for each, sha256 in brought)
        for some in reports.pieces(brought):
            self._report(reports.stored(some, saved=saved))
            self.sent.update({each.key: sha256 for each, sha256 in some})
        return len(brought)

    def _is_still(self, found: JobFile) -> bool:
        """Return whether it is as the last round saw it, and older than a round."""
        age_s = time.time() - found.mtime_ns / 1e9
        return self._seen.get(found.key) == found.stamp and age_s > self._limits.every_s

    def _changed(self, found: JobFile, manifest: BaselineManifest | None) -> str | None:
        """Its hash, if the service does not know that yet."""
        try:
            sha256 = self._written.hash(found, manifest)
        except OSError as error:
            if not is_lost(error):
                raise
            return None
        known = self.sent.get(found.key) or (manifest.hash_before(found.key) if manifest else None)
        return None if sha256 == known else sha256
