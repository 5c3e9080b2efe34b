"""Watch what nobody reports: launches that were not heard, nodes that fall silent."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import ColumnElement, Select, Table, bindparam, select, update

from service import lifecycle
from service.context import Context
from service.controllers.early_stopping import Stopper
from service.controllers.job_limits import JobLimits
from service.controllers.limit_rules import monotonic_at
from service.db.leader import Leader
from service.db.models import Attempt, Job, Member, Node
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.errors import StaleSpecError
from service.infra.threads import call_all
from service.nodes import launches, maintenance, registration
from torchyard.ids import AttemptId
from torchyard.states import AttemptState
from torchyard.wire import Result, ResultKind

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _LateMember(Record):
    """A member whose attempt stays ASSIGNED, by the attempt's id."""

    id: AttemptId
    node: str
    spec: StoredSpec


#: What was published in times to come was published before the clock was set back.
_UNHEARD = (Attempt.state == AttemptState.ASSIGNED) & ~Attempt.nudged_us.between(bindparam("late_us"), bindparam("now"))
_LATE: Select[Any] = (
    select(Attempt.id, Member.node, Job.spec)
    .join(Job, Job.id == Attempt.job_id)
    .join(Member, Member.attempt_id == Attempt.id)
    .where(_UNHEARD)
)
_NUDGED = update(cast("Table", Attempt.__table__)).where(
    Attempt.id.in_(bindparam("attempts", expanding=True)), _UNHEARD
)


def _waiting_for(lacking: ColumnElement[bool]) -> Select[AttemptId, str, int]:
    """Return the query for assigned attempts, the nodes whose members lack something, and when they were assigned."""
    return (
        select(Attempt.id, Member.node, Attempt.created_us)
        .join(Member, Member.attempt_id == Attempt.id)
        .where(Attempt.state == AttemptState.ASSIGNED, lacking)
        .order_by(Attempt.id, Member.node_rank)
    )


_UNCLAIMED, _UNPREPARED = _waiting_for(Member.nonce.is_(None)), _waiting_for(Member.prepared.is_(None))
_HEARD = select(Node.name, Node.last_seen_us).where(~Node.unreachable, Node.last_seen_us.is_not(None))


class Monitor:
    """One round every second. Silence is measured on the monotonic clock, from the moment this service began to listen
    or last saw a new heartbeat; so nothing looks dead after an outage of the service, or when the wall clock is set.
    """

    def __init__(self, ctx: Context, leader: Leader) -> None:
        self._ctx = ctx
        self._leader = leader
        #: For each node the newest heartbeat that was seen, and when it was seen first.
        self._heard: dict[str, tuple[int | None, float]] = {}
        #: Since when attempts are assigned.
        self._assigned: dict[AttemptId, float] = {}
        self._job_limits = JobLimits(ctx)
        self._parts: tuple[Callable[[], object], ...] = (
            self.republish,
            self.void_unclaimed,
            self.mark_silent_nodes,
            self._job_limits.run,
            lambda: maintenance.reconcile(ctx.db, ctx.now_us()),
            Stopper(ctx).run,
        )

    def run(self) -> None:
        """Do a round, if this service leads. A step that fails keeps no other from being done."""
        if not self._leader.leads():
            self._heard.clear()
            self._assigned.clear()
            self._job_limits.forget()
            return
        call_all(self._parts)

    def republish(self) -> None:
        """Publish the launch again of what stays ASSIGNED: the first may be lost. End what no node can start."""
        ctx = self._ctx
        now = ctx.now_us()
        late = {"late_us": now - round(ctx.settings.republish_after_s * 1e6), "now": now}
        with ctx.db.read() as tx:
            members = _LateMember.all(tx.execute(_LATE, late))
        startable = [member for member in members if self._can_start(member)]
        if not startable:
            return
        with ctx.unit_of_work() as unit:
            ids = [member.id for member in startable]
            unit.tx.execute(_NUDGED, {"attempts": ids, "nudged_us": unit.now, **late})
            for member in startable:
                unit.launch(member.node, member.id)

    def _can_start(self, member: _LateMember) -> bool:
        """End an attempt whose spec, stored by an earlier version, is not valid any more."""
        try:
            launches.valid_spec(member.spec)
        except StaleSpecError as error:
            with suppress(lifecycle.Conflict), self._ctx.unit_of_work() as unit:
                unusable = Result(kind=ResultKind.UNUSABLE, message=error.detail, ended_us=unit.now)
                lifecycle.finish(unit.tx, member.id, unusable, unit.now, node=member.node)
            return False
        return True

    def void_unclaimed(self) -> None:
        """Take back what nobody claims; a service that was away gives the nodes their time first."""
        ctx, assigned = self._ctx, set[AttemptId]()
        for limit, query, lack, words in (
            (ctx.settings.unclaimed_after_s, _UNCLAIMED, "claim", "has not claimed it"),
            (ctx.settings.unprepared_after_s, _UNPREPARED, "preparation", "is not prepared"),
        ):
            waiting = self._waiting(query)
            assigned |= waiting.keys()
            for attempt, late in waiting.items():
                if ctx.monotonic() - max(self._assigned[attempt], ctx.started) > limit:
                    why = f"node {late} {words} within {limit:g} s"
                    self._void(attempt, why, {"node": late, "lacks": lack, "limit_s": limit})
        self._assigned = {attempt: since for attempt, since in self._assigned.items() if attempt in assigned}

    def _waiting(self, query: Select[AttemptId, str, int]) -> dict[AttemptId, str]:
        """Return attempts and the nodes that they wait for, named together, and note since when.

        The wall clock tells how long an attempt had waited when it was seen first, and nothing after that.
        """
        ctx = self._ctx
        with ctx.db.read() as tx:
            rows = tx.execute(query).all()
        names: dict[AttemptId, list[str]] = {}
        for attempt, node, created_us in rows:
            names.setdefault(attempt, []).append(node)
            self._assigned.setdefault(attempt, monotonic_at(created_us, ctx.now_us(), ctx.monotonic()))
        return {attempt: ", ".join(each) for attempt, each in names.items()}

    def mark_silent_nodes(self) -> None:
        """Mark nodes unreachable that were not heard for too long; what runs there may still run."""
        with self._ctx.db.read() as tx:
            rows = tx.execute(_HEARD).all()
        for name, last_seen_us in rows:
            if self._silent_s(name, last_seen_us) > self._ctx.settings.unreachable_after_s:
                self._mark(name, last_seen_us)

    def _silent_s(self, name: str, last_seen_us: int | None) -> float:
        now = self._ctx.monotonic()
        known, since = self._heard.get(name, (None, now))
        if known != last_seen_us:
            since = now
            self._heard[name] = (last_seen_us, now)
        return now - since

    def _mark(self, name: str, last_seen_us: int | None) -> None:
        ctx = self._ctx
        with ctx.unit_of_work() as unit:
            jobs = registration.mark_unreachable(unit.tx, name, last_seen_us, unit.now)
            waiting = registration.waiting_for(unit.tx, name)
            unit.tell_node(name)
            unit.wake_scheduler()
        for attempt in waiting:
            self._void(attempt, f"node {name} fell silent before all nodes were prepared", {"node": name})
        _log.warning("node %s is silent; %d jobs may still be running there", name, len(jobs))

    def _void(self, attempt_id: AttemptId, why: str, data: dict[str, Any]) -> None:
        with suppress(lifecycle.Conflict), self._ctx.unit_of_work() as unit:  # it was claimed after all
            lifecycle.void(unit.tx, attempt_id, why, unit.now, data)
