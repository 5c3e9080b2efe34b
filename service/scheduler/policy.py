"""Who starts where, and who makes room: a pure, deterministic function over plain data.

`decide` looks once at everything and says what to do now. The live scheduler, the simulator, the explanations and the
tests run this code; all policies are settings of it (`torchyard.policy`).

1. **Reservations** that are about to start have those stopped that are in the way and can be (`reserved`).
2. **Promises**: a job that others were stopped for is looked at first, and what it waits for is kept for it.
3. The others follow in their **order** (`order`): class, lifted by waiting; within it by earned remaining time, age,
   and what user and project have had (`shares`). A job over a **quota** (`quotas`) is passed over and blocks nobody.
4. A job that fits on what is free **starts** there (`placement`). If it does not, it **preempts** those that come
   after it and may be stopped for it (`preemption`), if it then really starts.
5. The first job that can do neither is **blocked**: nodes are kept for it, and those behind it may only take what
   does not delay it (`backfill`); without `backfill` nobody behind it starts at all.

**Nobody starves.** A job that has waited for `longest_wait` comes before all that have waited less, in the order in
which they came, is not preempted any more, and what it needs is kept strictly. So if no job runs for longer than L,
then a job that has waited that long, with k - 1 such jobs before it in the order, starts within k * L (`backfill`),
unless something other than other jobs is in its way: its quota, a reservation, nodes that are closed. Of the attempts
that others make before, each ends by L.

A decision comes to rest: applied over and over at one moment, without new jobs, it ends with nothing to do
(`preemption`).
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from service.scheduler.backfill import keep
from service.scheduler.boxes import Place
from service.scheduler.decisions import Cause, Decision, Preempt, Start
from service.scheduler.order import order, ranks
from service.scheduler.placement import Ask, Space, never_fits
from service.scheduler.preemption import UNDER, Newcomer, Victims
from service.scheduler.quotas import Quotas, Reached, spent
from service.scheduler.reserved import Bars
from service.scheduler.shares import shares
from service.scheduler.table import Bools, Column
from torchyard.policy import Policy

if TYPE_CHECKING:
    from service.scheduler.state import State, Waiting

__all__ = ["Cause", "Decision", "Preempt", "Start", "ask_for", "decide", "never_fits", "order"]

#: Rows that are put in order at a time; the next time four times as many.
_CHUNK = 32
#: So many jobs are tried in vain that would fit, but for what is kept or reserved.
_TRIES = 256


def decide(state: "State", now_us: int, policy: Policy) -> list[Decision]:
    """What to do now; the state stays as it is. `now_us` is in microseconds."""
    if not state.waiting and not state.reservations:
        return []
    return Pass(state, now_us, policy).run()


def ask_for(job: "Waiting", now_us: int, policy: Policy) -> Ask:
    """What a job wants to have if it starts now."""
    limit = math.inf if job.limit_us is None else job.limit_us
    likely = math.inf if job.remaining is None else job.remaining.p90_us
    return Ask(
        job=job.job,
        shape=job.shape,
        nodes=job.nodes,
        user=job.user,
        project=job.project,
        yielding=job.preemptible and (policy.preemption or policy.time_slice is not None),
        ends_us=now_us + min(limit, likely),
        surely_ends_us=now_us + limit,
    )


class Pass:
    """One decision while it is made."""

    def __init__(self, state: "State", now_us: int, policy: Policy) -> None:
        self._state, self._now_us, self._policy = state, now_us, policy
        rooms = {node: room for node, room in state.rooms().items() if room.box.closed is None}
        self._bars = Bars(state, rooms, now_us, policy) if state.reservations else None
        self.space = Space(rooms=rooms) if self._bars is None else Space(rooms=rooms, barred=self._bars.barred)
        self._decisions: list[Decision] = []
        #: Jobs that need not be looked at any more.
        self._done: set[str] = set()
        #: Whether nodes are kept for the first blocked job.
        self._kept = False

    def run(self) -> list[Decision]:
        """Decides; once."""
        if self._bars is not None:
            self._decisions += self._bars.evictions(self._policy)
        if not len(self._state.queue):
            return self._decisions
        self._quotas = Quotas(self._state, self._now_us)
        self._keep_promises()
        self._find_lanes()
        self._excess = shares(self._state, self._now_us, self._policy)
        self._victims = Victims(self._state, self._now_us, self._policy, self._excess)
        self._victims.stop(decision.job for decision in self._decisions if isinstance(decision, Preempt))
        if self._fitting.any() or self._victims:
            self._serve()
        return self._decisions

    def reached(self, job: str) -> list[Reached]:
        """The quotas that forbid a waiting job to start, with what was decided counted."""
        return self._quotas.reached(self._state.lanes.lanes.key(self._lane_of(job)))

    def against(self, ask: Ask, node: str) -> list[str]:
        """Reservations that keep devices of the node from the job."""
        found = [] if self._bars is None else self._bars.against(ask)
        return [one.reservation.id for one in found if node in one.devices]

    def given(self, node: str) -> tuple[str, ...]:
        """Who was given something on the node, in order."""
        return tuple(job for job in self.space.rooms[node].jobs if job not in self._state.running)

    def _keep_promises(self) -> None:
        """Jobs that others were stopped for start, or have kept for them what is free already."""
        state = self._state
        waiting = [state.waiting[job] for job in {**state.promised, **state.yielding} if job in state.waiting]
        for job in sorted(waiting, key=lambda job: (-job.priority, job.number)):
            ask = ask_for(job, self._now_us, self._policy)
            if job.hindrance is not None or self._quotas.reached(state.lanes.lanes.key(self._lane_of(job.job))):
                continue
            places = self.space.find(ask)
            if places:
                self._start(job, ask, places)
                continue
            places = self._soon(job.job).find(ask)
            if places:
                self._take(job, places)

    def _soon(self, newcomer: str) -> Space:
        """What will be free once those that give way to the job are gone."""
        soon = self.space.copy()
        for name in self._state.yielding.get(newcomer, ()):
            victim = self._state.running[name]
            soon.release(name, victim.shape, victim.places)
        return soon

    def _find_lanes(self) -> None:
        """What each lane can hope for; only ever less, while a decision hands out what is there."""
        lanes = self._state.lanes
        most = max((len(room.free) for room in self.space.rooms.values()), default=-1)
        self._open: Bools = ~spent(self._quotas, self._state)
        #: May find room; may stop others; may have nodes kept.
        self._fitting: Bools = (lanes.whole <= most) & self._open
        self._pushing: Bools = self._open.copy()
        self._keeping: Bools = self._open.copy()
        #: Fit only if they are short enough not to delay somebody.
        self._tight: Bools = np.zeros(len(lanes), dtype=bool)
        self._tries = 0

    def _serve(self) -> None:
        """Looks at the jobs in their order until none of them can hope for anything."""
        queue = self._state.queue
        self._ranks = ranks(self._state, queue, self._now_us, self._policy, self._excess)
        self._worst = self._excess.worst
        nobody = np.zeros(len(queue), dtype=bool)
        self._might = self._victims.might(self._ranks, self._worst[queue.lane]) if self._victims else nobody
        self._unserved: Bools = ~nobody
        for job in self._done:
            self._unserved[queue.rows[job]] = False
        self._blocked: Ask | None = None
        self._hopeless = self._first_hopeless()
        for row in self._rows():
            if not self._look(row):
                break

    def _rows(self) -> Iterator[int]:
        """Rows that may start, stop others or have nodes kept, in order."""
        queue, key, size = self._state.queue, self._ranks.key, _CHUNK
        ahead = self._unserved.copy()
        while True:
            hoping = ahead & self._hopes(slice(None))
            rows = np.flatnonzero(hoping)
            if not len(rows):
                return
            if len(rows) > size:
                last = np.partition(key[rows], size)[size]
                rows = rows[key[rows] <= last]
            for row in rows[np.lexsort((queue.column(Column.NUMBER)[rows], key[rows]))].tolist():
                ahead[row] = False
                if self._hopes(row):
                    yield row
            size *= 4

    def _hopes(self, rows: Any) -> Any:
        """Whether there is still a chance for rows."""
        queue = self._state.queue
        lane = queue.lane[rows]
        fits = self._fitting[lane]
        if self._tight.any():
            fits = fits & (~self._tight[lane] | (self._now_us + queue.column(Column.BOUND)[rows] <= self._deadline()))
        return fits | (self._might[rows] & self._pushing[lane]) | (self._ranks.oldest[rows] & self._keeping[lane])

    def _deadline(self) -> float:
        """By when the jobs must be over that may have what is kept or reserved."""
        starts = [] if self._bars is None else [one.reservation.starts_us for one in self._bars.reserved]
        untils = [one.until_us for one in self.space.keeps.values() if one.until_us < math.inf]
        return max([*starts, *untils], default=0.0)

    def _look(self, row: int) -> bool:
        """Starts the job, makes room for it, or lets it wait; False if nobody after it may start."""
        state = self._state
        if not self._pass_blocked(row):
            return False
        job = state.waiting[state.queue.jobs[row]]
        lane = int(state.queue.lane[row])
        if self._quotas.reached(state.lanes.lanes.key(lane)):
            for hopes in (self._open, self._fitting, self._pushing, self._keeping):
                hopes[lane] = False
            return True
        ask = ask_for(job, self._now_us, self._policy)
        self._keep_for_blocked(ask)
        if self._starts(job, ask, lane) or self._pushes(job, ask, row, lane):
            return True
        return self._wait(ask, row, lane)

    def _starts(self, job: "Waiting", ask: Ask, lane: int) -> bool:
        if not self._fitting[lane]:
            return False
        places = self.space.find(ask)
        if places:
            self._start(job, ask, places)
            return True
        if self.space.bound and self.space.unbound().find(ask):
            self._tight[lane] = True
            self._tries += 1
            if self._tries >= _TRIES:
                self._fitting[:] = False
        else:
            self._fitting[self._alike(lane)] = False
        return False

    def _pushes(self, job: "Waiting", ask: Ask, row: int, lane: int) -> bool:
        if not (self._might[row] and self._pushing[lane]):
            return False
        ranks = self._ranks
        newcomer = Newcomer(
            ask=ask,
            number=job.number,
            key=float(ranks.key[row]),
            level=float(ranks.level[row]),
            score=float(ranks.score[row]),
            remaining_us=float(ranks.left[row]),
            excess=float(self._worst[lane]),
        )
        plan = self._victims.plan(newcomer, self.space)
        if plan is None:
            self._give_up_pushing(lane)
            return False
        self._victims.stop(victim.job.job for victim in plan.victims)
        for victim in plan.victims:
            self._decisions.append(Preempt(job=victim.job.job, for_job=job.job, reason=victim.cause))
        # The victims hold their places until they are gone: of what is free now, this takes the rest of what it needs.
        self._take(job, plan.places)
        return True

    def _give_up_pushing(self, lane: int) -> None:
        """Jobs behind this one can stop fewer than it could; of users under their share, others than this one could."""
        if self.space.bound:
            self._pushing[lane] = False
            return
        alike = self._alike(lane)
        if self._worst[lane] > UNDER:
            alike = alike & (self._worst > UNDER)
        self._pushing[alike] = False

    def _wait(self, ask: Ask, row: int, lane: int) -> bool:
        if not self._policy.backfill:
            return False
        if self._ranks.oldest[row]:
            if not keep(self.space, self._state, ask, self._now_us, strict=True):
                self._keeping[self._alike(lane)] = False
        elif self._blocked is None:
            self._blocked = ask
        return True

    def _first_hopeless(self) -> int | None:
        """The first job that can neither start nor stop anybody, as is plain before anything is handed out."""
        queue, key = self._state.queue, self._ranks.key
        rows = np.flatnonzero(self._open[queue.lane] & ~self._hopes(slice(None)) & self._unserved)
        if not len(rows):
            return None
        rows = rows[key[rows] == key[rows].min()]
        return int(rows[np.argmin(queue.column(Column.NUMBER)[rows])])

    def _pass_blocked(self, row: int) -> bool:
        """Whether the job may pass the first one that is blocked, which is found out on the way."""
        first, key = self._hopeless, self._ranks.key
        if self._blocked is None and first is not None and key[first] < key[row]:
            job = self._state.waiting[self._state.queue.jobs[first]]
            self._blocked = ask_for(job, self._now_us, self._policy)
        return self._blocked is None or self._policy.backfill

    def _keep_for_blocked(self, ask: Ask) -> None:
        """Keeps nodes for the first blocked job, once somebody comes whom that concerns."""
        if self._blocked is None or self._kept or ask.yielding:
            return
        self._kept = True
        keep(self.space, self._state, self._blocked, self._now_us, strict=False)

    def _alike(self, lane: int) -> Bools:
        """The lanes that need the same of as many nodes."""
        lanes = self._state.lanes
        same: Bools = lanes.kind == lanes.kind[lane]
        return same

    def _lane_of(self, job: str) -> int:
        return int(self._state.queue.lane[self._state.queue.rows[job]])

    def _start(self, job: "Waiting", ask: Ask, places: tuple[Place, ...]) -> None:
        self._decisions.append(Start(job=ask.job, places=places))
        self._take(job, places)

    def _take(self, job: "Waiting", places: tuple[Place, ...]) -> None:
        self.space.take(job.job, job.shape, places)
        self._done.add(job.job)
        expected = 0 if job.remaining is None else job.remaining.p50_us
        self._quotas.charge(self._state.lanes.lanes.key(self._lane_of(job.job)), expected)
