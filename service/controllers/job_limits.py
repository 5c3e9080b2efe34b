"""Rounds over jobs and runs that carry out what `service.controllers.limit_rules` decides.

What it remembers is of this process alone, and silence is measured on the monotonic clock: after an outage of the
service nothing looks idle or hung, every limit begins anew.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from service import lifecycle
from service.context import Context
from service.controllers import limit_queries, limit_rules
from service.controllers.limit_queries import IdleLimit, ReportingRun, StartLimit
from service.db.changefeed import Overlap
from service.infra.threads import call_all
from service.scheduler_cache.load import COMPARE_US, OVERLAP_US
from service.telemetry import stacks
from torchyard.api import JobError
from torchyard.ids import AttemptId, JobId
from torchyard.quantities import format_duration
from torchyard.states import AttemptState, StopReason

#: Seconds between two rounds, and so many times as long as a round took, if that is more.
EVERY_S = 1.0
REST = 20
#: So often a round looks for late transactions.
FAR_LOOK_US = 5 * 1_000_000
#: Seconds that the stacks of a run that hangs may take before it is stopped without them.
DUMP_PATIENCE_S = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Heard:
    """The newest report of a run, and when it was seen first."""

    newest_us: int
    at: float
    #: How long it may be the newest; None until that is needed.
    patience_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class _StartLimit:
    """A queued job's limit: since when it waits, by the wall clock, and when that is over, by the monotonic one."""

    since_us: int
    limit_s: float
    due_s: float


class JobLimits:
    """Look after limits; one thread calls it."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._heard: dict[AttemptId, _Heard] = {}
        #: When the stacks of a run that hangs were first missed.
        self._missed: dict[AttemptId, float] = {}
        self._idle: dict[tuple[str, str], limit_rules.Idleness] = {}
        #: Runs of which it was told that they do nothing.
        self._told: set[AttemptId] = set()
        #: Queued jobs with a `start_limit`.
        self._waiting: dict[JobId, _StartLimit] = {}
        self._read_us = self._compared_us = 0
        self._overlap = Overlap(OVERLAP_US, FAR_LOOK_US)
        self._next = 0.0

    def forget(self) -> None:
        """Forget what was seen here, which is old: another service leads."""
        self._heard, self._missed, self._idle, self._told = {}, {}, {}, set()
        self._waiting, self._read_us = {}, 0

    def run(self) -> None:
        """Do a round, if one is due."""
        now = self._ctx.monotonic()
        if now < self._next:
            return
        call_all((self.give_up_waiting, self.look_for_steps, self.look_for_idleness))
        done = self._ctx.monotonic()
        self._next = done + max(EVERY_S, REST * (done - now))

    # Jobs that never start

    def give_up_waiting(self) -> None:
        """Fail queued jobs that were not started within their `start_limit`; time on hold does not count.

        The wall clock tells how long a job had waited when it was seen first, and nothing after that: it may be set.
        """
        self._read_changed(self._ctx.now_us())
        now = self._ctx.monotonic()
        for job_id, limit in list(self._waiting.items()):
            if now > limit.due_s:
                self._give_up(job_id, limit.limit_s)

    def _read_changed(self, now: int) -> None:
        """Read the jobs that were changed since the last look: a queue may be long, and most of it stays as it is. Now
        and then all are read, as some may become visible late.
        """
        since = self._read_us - self._overlap.back_us(now)
        compare = not self._read_us or now < since or now - self._compared_us >= COMPARE_US
        with self._ctx.db.read() as tx:
            rows = limit_queries.start_limits(tx, None if compare else since)
        known = self._waiting
        if compare:
            self._waiting, self._compared_us = {}, now
        for row in rows:
            if row.waits:
                self._waiting[row.id] = self._start_limit(row, known.get(row.id), now)
            else:
                self._waiting.pop(row.id, None)
        self._read_us = now

    def _start_limit(self, row: StartLimit, known: _StartLimit | None, now: int) -> _StartLimit:
        since_us = max(row.created_us, row.eligible_us)
        if known is not None and (known.since_us, known.limit_s) == (since_us, row.limit):
            return known
        due_s = limit_rules.monotonic_at(since_us, now, self._ctx.monotonic()) + row.limit
        return _StartLimit(since_us=since_us, limit_s=row.limit, due_s=due_s)

    def _give_up(self, job_id: JobId, limit_s: float) -> None:
        limit = format_duration(limit_s)
        message = (
            f"it could not be started within its start_limit of {limit}: give a longer one, ask for "
            "fewer or shared GPUs, or take a higher priority"
        )
        error = JobError(cause="start-limit", message=message, params={"told": "advice", "limit": limit})
        with self._ctx.db.write() as tx:
            lifecycle.give_up(tx, job_id, error, self._ctx.now_us())
        self._waiting.pop(job_id, None)

    # Runs that make no step

    def look_for_steps(self) -> None:
        """Mark runs that report nothing any more, and stop those whose policy says so once their stacks are here.

        Only what has reported a step can be taken for hanging: a script that knows nothing of us may log with its
        tracker when it likes. Any metric is a sign of life then; logs are none: a progress bar or a retry loop goes on
        writing while no step is made. A run that has made its last step has none to make: it may evaluate or export
        for as long as it likes.
        """
        with self._ctx.db.read() as tx:
            rows = limit_queries.reporting(tx)
        alive = {row.id for row in rows}
        self._heard = {attempt: heard for attempt, heard in self._heard.items() if attempt in alive}
        self._missed = {attempt: since for attempt, since in self._missed.items() if attempt in alive}
        for row in rows:
            self._look_at(row)

    def _look_at(self, row: ReportingRun) -> None:
        now, heard = self._ctx.monotonic(), self._heard.get(row.id)
        if heard is None or heard.newest_us != row.newest_us:
            self._heard[row.id] = _Heard(newest_us=row.newest_us, at=now)
            if heard is not None and row.hung_us is not None:
                self._goes_on(row)
        elif row.hung_us is not None:
            self._stop_hung(row)
        elif row.stop is None and not row.through and now - heard.at > row.policy.after:
            self._judge(row, heard, now - heard.at)

    def _judge(self, row: ReportingRun, heard: _Heard, silent_s: float) -> None:
        patience = heard.patience_s
        if patience is None:
            with self._ctx.db.read() as tx:
                patience = limit_rules.patience_s(row.policy, limit_queries.reports(tx, row.id))
            self._heard[row.id] = _Heard(newest_us=heard.newest_us, at=heard.at, patience_s=patience)
        if silent_s <= patience:
            return
        now = self._ctx.now_us()
        data = {"silent": format_duration(round(silent_s)), "allowed": format_duration(patience)}
        why = f"hangs: no step for {data['silent']}, where it may take {data['allowed']}"
        with self._ctx.db.write() as tx:
            marked = lifecycle.mark_hung(tx, row.id, now - round(silent_s * 1e6), why, now, data)
        if marked:
            _log.warning("job %s %s", row.job_id, why)

    def _goes_on(self, row: ReportingRun) -> None:
        self._missed.pop(row.id, None)
        with self._ctx.db.write() as tx:
            lifecycle.clear_hung(tx, row.id, self._ctx.now_us())

    def _stop_hung(self, row: ReportingRun) -> None:
        """Stop it, unless it is stopping already or is only to be shown; with what its stacks say, if they come."""
        if row.stop is not None or row.policy.action == "show":
            return
        waited = self._ctx.monotonic() - self._missed.setdefault(row.id, self._ctx.monotonic())
        with self._ctx.db.write() as tx:
            if not stacks.complete(tx, row.id, row.dump_serial) and waited < DUMP_PATIENCE_S:
                return
            said = stacks.describe(tx, row.id, row.dump_serial) or "its stacks could not be had"
            words = f"stopped because it makes no step any more: {said}"
            _stop(tx, row, StopReason.HUNG, self._ctx.now_us(), words)

    # Runs that do nothing

    def look_for_idleness(self) -> None:
        """Stop runs whose devices have done nothing for as long as their idle limit, on all their nodes; after half of
        it their owners are told.
        """
        with self._ctx.db.read() as tx:
            rows = limit_queries.idle_limits(tx, self._ctx.settings.idle_limit_s)
            idle = {row.id: list(self._idleness(tx, row)) for row in rows}
        self._idle = {key: known for key, known in self._idle.items() if key[0] in idle}
        self._told &= idle.keys()
        for row in rows:
            lasts_s = min((each.lasts_s for each in idle[row.id]), default=0.0)
            if lasts_s >= row.limit:
                self._stop_idle(row)
            elif (lasts_s >= row.limit / 2) is not (row.id in self._told):
                self._tell_idle(row, lasts_s)

    def _idleness(self, tx: Connection, row: IdleLimit) -> Iterable[limit_rules.Idleness]:
        gpus = limit_queries.has_gpus(tx, row.id)
        if not (gpus or row.own):
            return
        for node in limit_queries.nodes(tx, row.id):
            known = self._idle.get((row.id, node))
            for sample in limit_queries.samples(tx, row.id, node, known.newest_us if known else None):
                known = known or limit_rules.Idleness(newest_us=sample.time_us)
                known = known.after(sample.time_us, limit_rules.busy(sample.values, gpus=gpus))
            self._idle[row.id, node] = known = known or limit_rules.Idleness(newest_us=0)
            yield known

    def _tell_idle(self, row: IdleLimit, lasts_s: float) -> None:
        """Tell that a run does nothing, or that it works again."""
        note = _AGAIN if row.id in self._told else _idle_note(row, format_duration(round(lasts_s)))
        with self._ctx.db.write() as tx:
            lifecycle.tell_idle(tx, row.id, note, self._ctx.now_us())
        self._told ^= {row.id}

    def _stop_idle(self, row: IdleLimit) -> None:
        words = f"stopped because its devices did nothing for {_limit(row)}"
        with self._ctx.db.write() as tx:
            _stop(tx, row, StopReason.IDLE, self._ctx.now_us(), words)


_AGAIN = lifecycle.Note(kind="goes-on", message="its devices work again", data={"hung": False})


def _idle_note(row: IdleLimit, lasts: str) -> lifecycle.Note:
    message = f"its devices have done nothing for {lasts}: it is stopped at {_limit(row)}"
    data = {"lasts": lasts, "limit": format_duration(row.limit), "own": bool(row.own)}
    return lifecycle.Note(kind="idle", message=message, data=data)


def _limit(row: IdleLimit) -> str:
    """Return words for an idle limit."""
    limit = format_duration(row.limit)
    if row.own:
        return f"its idle_limit of {limit}"
    return f"this installation's idle limit of {limit} (idle_limit in a spec is the job's own)"


def _stop(tx: Connection, row: ReportingRun | IdleLimit, reason: StopReason, now: int, words: str) -> None:
    """Stop the run that was looked at, unless it is over by now: the job's next one has done nothing wrong."""
    _, attempt = lifecycle.lock_attempt(tx, row.id)
    if attempt.state == AttemptState.RUNNING:
        lifecycle.request_stop(tx, row.job_id, reason, None, now, words)
