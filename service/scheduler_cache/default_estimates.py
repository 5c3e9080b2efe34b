"""Estimates of waiting jobs that have never run: the same for all of a kind, so a long queue costs little."""

from collections import defaultdict
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from sqlalchemy import Connection

from service.estimation import progress
from service.estimation.estimates import HistoryKey
from service.estimation.forecasts import Estimator
from service.scheduler.model.jobs import Estimate
from service.scheduler.model.state import SchedulerState
from service.scheduler_cache.load_jobs import LoadedJob
from torchyard.ids import JobId

#: An estimate that moves by less than this part of itself changes no decision worth the work.
WORTH = 0.2
#: Kinds that are asked about in a pass.
KINDS = 50


class _JobKind(NamedTuple):
    key: HistoryKey
    limit_us: int | None


class DefaultEstimates:
    """Estimates of all kinds that wait; not for several threads at once."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._known: dict[_JobKind, Estimate | None] = {}
        self._jobs: defaultdict[_JobKind, set[JobId]] = defaultdict(set)
        self._kinds: dict[JobId, _JobKind] = {}
        #: Kinds still to be asked about in this round, in order; a kind that nobody waits with is none of them.
        self._due: dict[_JobKind, None] = {}

    def add(self, tx: Connection, row: LoadedJob, now: int) -> Estimate | None:
        """Add a job that waits; return its estimate."""
        kind = _JobKind(progress.history_key(row), row.spec.time_limit_us)
        self.drop(row.id)
        self._kinds[row.id] = kind
        self._jobs[kind].add(row.id)
        if kind not in self._known:
            self._known[kind] = self._estimator.of_history(tx, kind.key, kind.limit_us, now)
        return self._known[kind]

    def drop(self, job: JobId) -> None:
        """Forget a job that does not wait any more."""
        kind = self._kinds.pop(job, None)
        if kind is not None:
            self._jobs[kind].discard(job)
            if not self._jobs[kind]:
                del self._jobs[kind], self._known[kind]
                self._due.pop(kind, None)

    def begin_round(self) -> None:
        """Ask about all kinds again, unless the last round is not over."""
        self._due = self._due or dict.fromkeys(self._jobs)

    def renew(self, tx: Connection, state: SchedulerState, now: int) -> None:
        """Ask again for some of the kinds, and tell the state where the answer has changed."""
        for kind in list(islice(self._due, KINDS)):
            del self._due[kind]
            self._renew(tx, kind, state, now)

    def _renew(self, tx: Connection, kind: _JobKind, state: SchedulerState, now: int) -> None:
        fresh = self._estimator.of_history(tx, kind.key, kind.limit_us, now)
        if not _alike(fresh, self._known[kind]):
            self._known[kind] = fresh
            state.put([replace(state.waiting[job], remaining=fresh) for job in self._jobs[kind]])


def _alike(one: Estimate | None, other: Estimate | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.source is other.source and abs(one.p50_us - other.p50_us) <= WORTH * other.p50_us
