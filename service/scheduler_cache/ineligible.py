"""Reasons to hold waiting jobs back beside their rows: checkpoints on the way, paused sweeps, missing secrets."""

from collections import defaultdict
from dataclasses import replace

from sqlalchemy import Connection, bindparam, select

from service.db.chunks import chunks
from service.db.models import Group
from service.db.records.spec import StoredSweep
from service.scheduler.model.jobs import IneligibleReason
from service.scheduler.model.state import SchedulerState
from service.scheduler_cache import load_jobs
from service.scheduler_cache.load_jobs import LoadedJob
from service.secrets import of_jobs
from service.secrets.of_jobs import NamedSecrets
from torchyard.ids import JobId

_OWN = (IneligibleReason.HELD, IneligibleReason.DEPENDENCY)
_GROUPS = select(Group.id, Group.paused, Group.sweep).where(Group.id.in_(bindparam("groups", expanding=True)))


class Ineligibility:
    """Waiting jobs that must be asked about; not for several threads at once."""

    def __init__(self) -> None:
        #: Jobs that are to be asked about, and until when in any case: a node may be lost and found.
        self._back: dict[JobId, int] = {}
        #: Secrets that waiting jobs name.
        self._secrets: dict[JobId, NamedSecrets] = {}
        #: Waiting jobs of each sweep.
        self._trials: defaultdict[str, set[JobId]] = defaultdict(set)
        self._sweep: dict[JobId, str] = {}
        #: Those of them that have not been looked at yet, and whether their sweeps were paused at the last look.
        self._fresh: set[JobId] = set()
        self._paused: dict[str, bool] = {}

    def add(self, row: LoadedJob, now: int) -> None:
        """Add a job that waits, or waits again."""
        until_us = max(row.queued_us + load_jobs.SAVING_US, row.retry_us or 0)
        if row.attempt and until_us > now:
            self._back[row.id] = until_us
        if row.spec.secrets:
            self._secrets[row.id] = NamedSecrets(user_id=row.user_id, project=row.project, names=row.spec.secrets)
        if row.group_id is not None:
            self._sweep[row.id] = row.group_id
            self._trials[row.group_id].add(row.id)
            self._fresh.add(row.id)

    def drop(self, job: JobId) -> None:
        """Forget a job that does not wait any more."""
        self._back.pop(job, None)
        self._secrets.pop(job, None)
        self._fresh.discard(job)
        sweep = self._sweep.pop(job, None)
        if sweep is not None:
            self._trials[sweep].discard(job)
            if not self._trials[sweep]:
                del self._trials[sweep]

    def shrink(self) -> None:
        """Give back the room of jobs that do not wait any more."""
        self._sweep, self._secrets = self._sweep.copy(), self._secrets.copy()
        for sweep, jobs in self._trials.items():
            self._trials[sweep] = jobs.copy()

    def apply(self, tx: Connection, state: SchedulerState, now: int) -> None:
        """Mark the jobs in the state as they are now, and set the caps of sweeps."""
        groups = self._groups(tx)
        state.caps = {group: cap for group, (_, cap) in groups.items() if cap is not None}
        saving = load_jobs.saving(tx, sorted(self._back), now) if self._back else frozenset()
        resting = load_jobs.resting(tx, sorted(self._back), now) if self._back else frozenset()
        back = dict.fromkeys(resting, IneligibleReason.RESTING) | dict.fromkeys(saving, IneligibleReason.SAVING)
        if self._secrets:
            back |= dict.fromkeys(of_jobs.missing(tx, self._secrets), IneligibleReason.SECRET)
        paused = {group: stopped for group, (stopped, _) in groups.items()}
        turned = [group for group, stopped in paused.items() if self._paused.get(group, False) is not stopped]
        asked = self._fresh.union(self._back, self._secrets, *(self._trials[group] for group in turned))
        self._back = {job: until_us for job, until_us in self._back.items() if until_us > now}
        self._fresh, self._paused = set(), paused
        for job in asked:
            stopped = paused.get(self._sweep.get(job, ""), False)
            _mark(state, job, back.get(job) or (IneligibleReason.PAUSED if stopped else None))

    def _groups(self, tx: Connection) -> dict[str, tuple[bool, int | None]]:
        """Sweeps with waiting trials: whether they are paused, and how many may run at once."""
        return {
            group: (paused is not None, StoredSweep(sweep).running)
            for some in chunks(list(self._trials))
            for group, paused, sweep in tx.execute(_GROUPS, {"groups": some})
        }


def _mark(state: SchedulerState, job: JobId, ineligible: IneligibleReason | None) -> None:
    waiting = state.waiting[job]
    if waiting.ineligible not in _OWN and waiting.ineligible is not ineligible:
        state.put([replace(waiting, ineligible=ineligible)])
