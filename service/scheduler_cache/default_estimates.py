"""Estimates of waiting jobs that have never run: the same for all of a kind, so a long queue costs little."""

from dataclasses import dataclass, replace
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
    """The fields of a history's key, and the time limit."""

    project: str
    user: str
    work: str
    limit_us: int | None


@dataclass(slots=True)
class _WaitingKind:
    kind: _JobKind
    estimate: Estimate | None
    jobs: int = 0


class DefaultEstimates:
    """Estimates of all kinds that wait; not for several threads at once."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._kinds: dict[_JobKind, _WaitingKind] = {}
        # Not the jobs of each kind: a hundred thousand may all be of different kinds, and a set is 216 bytes.
        self._jobs: dict[JobId, _WaitingKind] = {}
        #: Kinds still to be asked about in this round, in order; a kind that nobody waits with is none of them.
        self._due: dict[_JobKind, None] = {}

    def add(self, tx: Connection, row: LoadedJob, now: int) -> Estimate | None:
        """Add a job that waits; return its estimate."""
        kind = _JobKind(*progress.history_key(row), row.spec.time_limit_us)
        self.drop(row.id)
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = _WaitingKind(kind, self._ask(tx, kind, now))
        known.jobs += 1
        self._jobs[row.id] = known
        return known.estimate

    def drop(self, job: JobId) -> None:
        """Forget a job that does not wait any more."""
        known = self._jobs.pop(job, None)
        if known is not None:
            known.jobs -= 1
            if not known.jobs:
                del self._kinds[known.kind]
                self._due.pop(known.kind, None)

    def shrink(self) -> None:
        """Give back the room of jobs that do not wait any more."""
        self._kinds, self._jobs = self._kinds.copy(), self._jobs.copy()

    def begin_round(self) -> None:
        """Ask about all kinds again, unless the last round is not over."""
        self._due = self._due or dict.fromkeys(self._kinds)

    def renew(self, tx: Connection, state: SchedulerState, now: int) -> None:
        """Ask again for some of the kinds, and tell the state where the answer has changed."""
        changed = set[int]()
        for kind in list(islice(self._due, KINDS)):
            del self._due[kind]
            known, fresh = self._kinds[kind], self._ask(tx, kind, now)
            if not _alike(fresh, known.estimate):
                known.estimate = fresh
                changed.add(id(known))
        if changed:
            found = [(job, known.estimate) for job, known in self._jobs.items() if id(known) in changed]
            state.put([replace(state.waiting[job], remaining=fresh) for job, fresh in found])

    def _ask(self, tx: Connection, kind: _JobKind, now: int) -> Estimate | None:
        key = HistoryKey(kind.project, kind.user, kind.work)
        return self._estimator.of_history(tx, key, kind.limit_us, now)


def _alike(one: Estimate | None, other: Estimate | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.source is other.source and abs(one.p50_us - other.p50_us) <= WORTH * other.p50_us
