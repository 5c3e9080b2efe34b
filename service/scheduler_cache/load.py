"""The policy's state, kept true to the database by reading only what has changed.

Every change of a job renews its `changed_us`, so a pass reads the jobs that changed since the last one. Transactions
may become visible a little later than they say: each look goes back over the last moment again, some go back further,
and now and then all jobs are compared. A job is known by the number of its last event, which only grows, so what is
read late never undoes what was read before.

A reader's transaction begins while the loader is locked, and is handed out with the state: so both show one moment, and
none is older than one that was read before. Readers share one copy of the jobs as long as none has changed.

What is kept of jobs goes with them, and so does its room: one object of each that stays would hold the memory that all
others were in.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from sqlalchemy import Connection

from service import notices
from service.accounting import accounts
from service.accounting.policy_settings import current_policy
from service.db.changefeed import Overlap
from service.db.engine import Database
from service.estimation.forecasts import Estimator
from service.scheduler.model.jobs import Estimate, IneligibleReason
from service.scheduler.model.state import SchedulerState
from service.scheduler_cache import load_jobs, reservations
from service.scheduler_cache.default_estimates import DefaultEstimates
from service.scheduler_cache.excluded_nodes import ExcludedNodes
from service.scheduler_cache.ineligible import Ineligibility
from service.scheduler_cache.known_order import KnownOrder
from service.scheduler_cache.load_jobs import LoadedJob, RestartRules, resources_of
from service.scheduler_cache.load_nodes import NodeLoader
from service.scheduler_cache.surroundings import beside
from torchyard.ids import JobId
from torchyard.spec.policy import Policy
from torchyard.states import JOB_FINAL, JobState

__all__ = ["Loader", "resources_of"]

#: Transactions become visible at most this much later than the times that they write, or wait for the next comparison.
OVERLAP_US = 15 * 1_000_000
#: So often a look goes back so far.
FAR_LOOK_US = 500_000
#: All jobs are compared this often.
COMPARE_US = 300 * 1_000_000
#: What jobs have still to do is estimated this often, of so many running ones in a pass; in between it is taken to
#: shrink by the time that passes.
ESTIMATE_US = 10 * 1_000_000
ESTIMATES = 100
#: Jobs that are made from rows at a time, so that a long queue needs little memory on the way.
BATCH = 500
#: So many jobs leave nothing behind that is worth the work.
FEW = 10_000


class Loader:
    """Holds the state; safe from many threads. `free` tells how many bytes the service's own disk has left."""

    def __init__(self, disk_floor: int, estimator: Estimator, free: Callable[[], int] | None = None) -> None:
        self._lock = threading.Lock()
        self._state = SchedulerState()
        #: What readers were given last, until a job changes.
        self._copied: SchedulerState | None = None
        self.order = KnownOrder()
        self._nodes = NodeLoader(disk_floor, free)
        self._estimator = estimator
        self._defaults = DefaultEstimates(estimator)
        self._ineligibility = Ineligibility()
        self._excluded_nodes = ExcludedNodes()
        #: Number of the last event of each job that is not over, as it was read.
        self._seen: dict[JobId, int] = {}
        #: Jobs that are over, and that looks may come upon again.
        self._over: set[JobId] = set()
        #: Most jobs that were known since there was room for as many as there are.
        self._most = 0
        self._mark_us = self._compared_us = self._estimated_us = 0
        self._overlap = Overlap(OVERLAP_US, FAR_LOOK_US)
        #: Whether it is known who was promised what others held.
        self._recalled = False
        #: What decides, beside the jobs themselves, which of them may be put back; as of when they were read.
        self._restarts: RestartRules | None = None
        #: The policy as of this look, once it was asked for.
        self._policy: Policy | None = None
        #: Running jobs still to be estimated in this round.
        self._due: list[JobId] = []

    @contextmanager
    def live(self, db: Database, now: int) -> Iterator[tuple[Connection, SchedulerState]]:
        """Hand out the state as of now and its transaction; everybody else waits for it until the block ends."""
        with self._lock, db.read() as tx:
            self._refresh(tx, now)
            if self.busy:
                self._surroundings(tx, now)
            self._drop_copy()
            yield tx, self._state

    def policy(self, tx: Connection) -> Policy:
        """Return the policy as the look with this transaction shows it, without asking again; for `live` alone."""
        if self._policy is None:
            self._policy = current_policy(tx)
        return self._policy

    def set_disk_floor(self, disk_floor: int) -> None:
        """Give no jobs to nodes with less free disk, from the next look on."""
        with self._lock:
            self._nodes.disk_floor = disk_floor

    def recall(self) -> None:
        """Read anew who was promised what others held: a service that does not lead may miss it between its looks."""
        with self._lock:
            self._recalled = False

    @contextmanager
    def snapshot(
        self, db: Database, now: int, asked: JobId | None = None
    ) -> Iterator[tuple[Connection, SchedulerState]]:
        """Open a transaction that reads, and hand out the state as of the same moment; whoever changes it copies it.

        The job that is `asked` about is read by itself: looks may not have come upon its last change yet.

        The caller has no transaction open: everybody who waits for the loader would hold a connection that whoever has
        it may want.
        """
        with ExitStack() as stack:
            with self._lock:
                tx = stack.enter_context(db.read())
                self._refresh(tx, now)
                if asked is not None:
                    self._read(tx, [asked], now)
                self._surroundings(tx, now)
                self._drop_copy()
                state = self._copied = self._shared()
            yield tx, state

    def _drop_copy(self) -> None:
        """Forget what readers were given, and its order, once nobody will be given it again."""
        if self._copied is not None and self._copied.changes != self._state.changes:
            self._copied = None
            self.order.forget()

    def _shared(self) -> SchedulerState:
        """Return a copy of the state for all readers, whose jobs are the ones of the last copy if none has changed."""
        state, known = self._state, self._copied
        shared = state.copy() if known is None else beside(known, state)
        shared.capacities()  # made now: many threads read it
        return shared

    @property
    def busy(self) -> bool:
        """True if there is anything to decide."""
        state = self._state
        return bool(state.waiting or state.reservations or state.victims)

    def _refresh(self, tx: Connection, now: int) -> None:
        """Bring jobs and reservations up to date."""
        self._policy = None
        self._state.reservations = reservations.for_policy(tx, now)
        compare = not self._mark_us or now - self._compared_us >= COMPARE_US or now < self._mark_us - OVERLAP_US
        changed = self._compare(tx, now) if compare else self._changed(tx, now)
        any_job = bool(changed or self._state.waiting or self._state.running)
        rules = load_jobs.restart_rules(tx, self.policy(tx)) if any_job else None
        changed += self._outdated(rules, changed)
        for start in range(0, len(changed), BATCH):
            self._read(tx, changed[start : start + BATCH], now)
        self._restarts = rules
        self._keep_promises(tx, now)
        self._mark_us = now if compare else max(now, self._mark_us)
        self._shrink()

    def _shrink(self) -> None:
        """Give back the room of jobs that are over: a dictionary keeps what the most that were ever in it took."""
        self._most = max(self._most, len(self._seen))
        if self._most < FEW or 4 * len(self._seen) > self._most:
            return
        self._most = len(self._seen)
        self._state, self._seen = self._state.copy(), self._seen.copy()
        self._defaults.shrink()
        self._ineligibility.shrink()

    def _keep_promises(self, tx: Connection, now: int) -> None:
        """Whoever others were stopped for has the first look at what is free, unless it is held or blocked."""
        state = self._state
        if not self._recalled:
            state.promised = dict.fromkeys(load_jobs.promised(tx, now))
            self._recalled = True
        for job in list(state.promised):
            if job not in state.waiting or state.waiting[job].ineligible in (
                IneligibleReason.HELD,
                IneligibleReason.DEPENDENCY,
            ):
                del state.promised[job]

    def _changed(self, tx: Connection, now: int) -> list[JobId]:
        back_us = self._overlap.back_us(now)
        seen, over, news = self._seen, set[JobId](), list[JobId]()
        # After a large submission there are thousands of rows that were seen.
        for rows in tx.execute(load_jobs.CHANGED, {"since": self._mark_us - back_us}).partitions(BATCH):
            for job, last_event, state in rows:
                if state in JOB_FINAL:
                    over.add(job)
                elif seen.get(job, -1) < last_event:
                    news.append(job)
        for job in over - self._over:
            self._forget(job)
        # What a look that went back far has not found, none will.
        self._over = over if back_us == OVERLAP_US else self._over | over
        return news

    def _compare(self, tx: Connection, now: int) -> list[JobId]:
        """Return all jobs that are not over and have changed; what is known of others is forgotten."""
        self._compared_us = now
        self._overlap.looked_far(now)
        # An error may have left jobs in the state whose events are not known.
        gone, news = {*self._seen, *self._state.waiting, *self._state.running}, list[JobId]()
        for rows in tx.execute(load_jobs.ALIVE).partitions(BATCH):
            for job, last_event, _ in rows:
                gone.discard(job)
                if self._seen.get(job, -1) < last_event:
                    news.append(job)
        for job in gone:
            self._forget(job)
        return news

    def _outdated(self, rules: RestartRules | None, changed: list[JobId]) -> list[JobId]:
        """Return the other jobs that were read under rules by which their restarts have changed; they are read anew."""
        before = self._restarts
        if before is None or rules is None or before == rules:
            return []
        everywhere = before.most != rules.most
        projects, known = before.forbidden ^ rules.forbidden, set(changed)
        jobs = [*self._state.waiting.values(), *self._state.running.values()]
        found = [one.job for one in jobs if (everywhere or one.project in projects) and one.job not in known]
        for job in found:
            self._seen.pop(job, None)
        return found

    def _read(self, tx: Connection, jobs: list[JobId], now: int) -> None:
        rows = [row for row in load_jobs.load(tx, jobs) if self._seen.get(row.id, -1) < row.last_event]
        left = self._estimates(tx, [row for row in rows if row.attempt], now)
        runs, policy = [], self.policy(tx)
        for row in rows:
            if row.state == JobState.QUEUED:
                expected = left.get(row.id) or self._defaults.add(tx, row, now)
                waiting = load_jobs.waiting(row, expected, policy)
                self._state.put([self._excluded_nodes.told(waiting)])
                self._ineligibility.add(row, now)
            elif row.state in JOB_FINAL:
                self._forget(row.id)
            else:
                self._unqueue(row.id)
                runs.append(row)
        self._put_running(tx, runs, left, now)
        # At the end: what an error interrupts is read again.
        self._seen.update((row.id, row.last_event) for row in rows if row.state not in JOB_FINAL)

    def _put_running(self, tx: Connection, rows: list[LoadedJob], left: dict[JobId, Estimate], now: int) -> None:
        runs = load_jobs.running(tx, rows, left, self.policy(tx), now)
        self._state.put(map(self._excluded_nodes.told, runs))

    def _estimates(self, tx: Connection, rows: list[LoadedJob], now: int) -> dict[JobId, Estimate]:
        return self._estimator.remaining(tx, rows, now) if rows else {}

    def _forget(self, job: JobId) -> None:
        self._seen.pop(job, None)
        self._state.remove(job)
        self._unqueue(job)

    def _unqueue(self, job: JobId) -> None:
        self._defaults.drop(job)
        self._ineligibility.drop(job)

    def _surroundings(self, tx: Connection, now: int) -> None:
        """Read all that a decision looks at beside the jobs themselves."""
        state = self._state
        state.paused = notices.pause_words(tx)
        state.nodes = self._nodes.read(tx)
        known = accounts.stored(tx)
        state.users, state.projects = (accounts.for_policy(tx, kind, known, now) for kind in ("user", "project"))
        self._excluded_nodes.apply(tx, state)
        self._ineligibility.apply(tx, state, now)
        if not 0 <= now - self._estimated_us < ESTIMATE_US:
            self._estimated_us = now
            self._due = self._due or list(state.running)
            self._defaults.begin_round()
        self._estimate_some(tx, now)
        self._defaults.renew(tx, state, now)

    def _estimate_some(self, tx: Connection, now: int) -> None:
        state = self._state
        some, self._due = self._due[:ESTIMATES], self._due[ESTIMATES:]
        rows = load_jobs.load(tx, [job for job in some if job in state.running])
        load_jobs.estimate(state, self._estimates(tx, rows, now), now)
        if tried := load_jobs.load(tx, load_jobs.tried(state, now)):
            self._put_running(tx, tried, self._estimates(tx, tried, now), now)
