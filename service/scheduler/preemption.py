"""Who is stopped for a job that finds no room.

Only running jobs that can be stopped, have run for `min_run`, and come *after* the newcomer in the order. One of these
must be true as well:

- the newcomer has waited for too long, and it is its turn (`order`);
- they are of a lower class (`preemption`);
- their user or project has had more than their share, and the newcomer's have not (`preemption`);
- `time_slice` is set and the newcomer is clearly ahead: nothing is known of it yet, or its score is `AHEAD` times
  better and what it gains is more than a preemption costs. Never is work thrown away for this: a job that would start
  from the beginning is left alone.

Nobody is stopped unless the newcomer then really starts there: its placement is tried on the freed nodes first. As
few as possible are stopped: jobs of lower classes or over their share by the least work since their last checkpoint,
those that make room for a shorter one from the end of the order.

It comes to rest: each preemption puts a job in the place of jobs that all come after it in one total order, which
stopping and starting do not change. With the jobs that run sorted by that order, each decision makes the list better
at the first place where it changes, and there are finitely many such lists.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from service.scheduler.columns import Bools, Floats, Ints
from service.scheduler.decisions import Cause
from service.scheduler.making_room import Plan, Victim, on_one_node, on_several
from service.scheduler.order import LAS_BEHIND, Ranks
from service.scheduler.placement import Ask, Space
from service.scheduler.rooms import Room
from service.scheduler.table import Column
from torchyard.policy import Order, Policy

if TYPE_CHECKING:
    from service.scheduler.state import State

#: A running job gives way to one whose score is so many times better.
AHEAD = 1.25
#: Parts of their share by which one must be over, and the other under it.
OVER, UNDER = 1.1, 1.0


class Newcomer(NamedTuple):
    """A waiting job that wants places of others, and its rank."""

    ask: Ask
    number: int
    key: float
    level: float
    score: float
    left_us: float
    #: The larger excess of its user and its project.
    excess: float
    #: It has waited for too long, and it is its turn.
    turn: bool = False


def newcomer(ask: Ask, number: int, ranks: Ranks, row: int, lane: int) -> Newcomer:
    """The job of that number, in that row and lane."""
    return Newcomer(
        ask=ask,
        number=number,
        key=float(ranks.key[row]),
        level=float(ranks.level[row]),
        score=float(ranks.score[row]),
        left_us=float(ranks.left[row]),
        excess=float(ranks.worst[lane]),
        turn=bool(ranks.turn[row]),
    )


class Victims:
    """The running jobs that can be stopped at all, as of one moment, from the end of the order."""

    def __init__(self, state: "State", ranks: Ranks, stoppable: Bools, now_us: int, policy: Policy) -> None:
        self._state, self._now_us, self._policy = state, now_us, policy
        number = state.table.columns[Column.NUMBER]
        rows: Ints = (stoppable & ~ranks.turn).nonzero()[0]
        self._rows = rows = rows[np.lexsort((number[rows], ranks.key[rows]))[::-1]]
        #: Negative, so that they rise.
        self._key, self._number = -ranks.key[rows], -number[rows]
        self._level, self._score, self._left = ranks.level[rows], ranks.score[rows], ranks.left[rows]
        self._lowest = np.maximum.reduce(self._level, initial=-np.inf)
        over: Bools = ranks.worst[state.table.lane[rows]] > OVER
        self._over = over if policy.preemption and np.count_nonzero(over) else None
        self._slicing = policy.time_slice is not None and policy.order not in {Order.FIFO, Order.SJF}
        self._open: Bools = np.ones(len(rows), dtype=bool)
        self._made: dict[tuple[int, Cause], Victim] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def might(self, ranks: Ranks, lane: Ints) -> Bools:
        """Which jobs come before some victim that they may stop: a first sieve, which lets no such job fall."""
        found = ranks.turn.copy()
        if self._policy.preemption:
            found |= ranks.level < self._lowest
        if self._over is not None:
            last = -self._key[self._over.argmax()]
            found |= (ranks.worst[lane] <= UNDER) & (ranks.key <= last)
        if self._slicing:
            score, left = np.maximum.reduce(self._score), np.maximum.reduce(self._left)
            found |= (ranks.level <= self._lowest) & self._clearly_ahead(ranks.score, ranks.left, score, left)
        return found

    def suffice(self, rows: Ints, ranks: Ranks, rooms: Mapping[str, Room]) -> Bools:
        """Which of these waiting jobs would have GPUs enough if all went whom they may stop: a second sieve, which lets
        no such job fall either. Which GPUs these are is not asked.
        """
        lanes, lane = self._state.lanes, self._state.table.lane[rows]
        key, number = -ranks.key[rows, None], -self._state.table.columns[Column.NUMBER][rows, None]
        after: Bools = (self._key < key) | ((self._key == key) & (self._number < number))
        level, score, left, turn = (one[rows, None] for one in (ranks.level, ranks.score, ranks.left, ranks.turn))
        reasons = self._reasons(level, score, left, ranks.worst[lane, None], turn)
        reason = reduce(np.logical_or, (whom for _, whom in reasons))
        whole = lanes.whole[lane]
        nodes = np.where(whole > 0, lanes.gpus[lane] // np.maximum(whole, 1), 1)
        free = np.array([len(room.free) for room in rooms.values()])
        could = (after & reason & self._open) @ self._held(list(rooms)) + free >= whole[:, None]
        found: Bools = np.count_nonzero(could, axis=1) >= nodes
        return found

    def _held(self, nodes: Sequence[str]) -> Floats:
        """How many GPUs of each node each victim has."""
        at = {node: number for number, node in enumerate(nodes)}
        held = np.zeros((len(self._rows), len(nodes)))
        for victim, row in enumerate(self._rows.tolist()):
            for place in self._state.running[self._state.table.jobs[row]].places:
                if place.node in at:
                    held[victim, at[place.node]] = len(place.uuids)
        return held

    def stop(self, jobs: Iterable[str]) -> None:
        """They are chosen, and can't be chosen again."""
        for job in jobs:
            self._open &= self._rows != self._state.table.rows[job]

    def plan(self, newcomer: Newcomer, space: Space) -> Plan | None:
        """The cheapest preemption after which the newcomer starts; None if there is none."""
        by_node: dict[str, list[Victim]] = {}
        for victim in self._of(newcomer):
            for place in victim.job.places:
                by_node.setdefault(place.node, []).append(victim)
        if not by_node:
            return None
        make_room = on_several if newcomer.ask.nodes > 1 else on_one_node
        return make_room(newcomer.ask, by_node, space)

    def _of(self, newcomer: Newcomer) -> list[Victim]:
        """Those that this one may stop, in the order in which they go."""
        end = self._behind(newcomer)
        stronger: dict[int, Cause] = {}
        found: list[Victim] = []
        _, _, _, level, score, left, excess, turn = newcomer
        for cause, whom in self._reasons(level, score, left, excess, turn):
            those = _where((self._open & whom)[:end])
            if cause is Cause.TIME_SLICE:
                sliced = (self._victim(at, cause) for at in those if at not in stronger)
                found = [victim for victim in sliced if not victim.job.starts_over]
            else:
                stronger |= dict.fromkeys(those, cause)
        if stronger:
            found += [self._victim(at, cause) for at, cause in stronger.items()]
            found.sort(key=lambda victim: victim.turn)
        return found

    def _reasons(self, level: Any, score: Any, left: Any, excess: Any, turn: Any) -> list[tuple[Cause, Any]]:
        """Whom a newcomer may stop, if they come after it, for which cause: of one, or of a column of newcomers. Time
        slices are the last, for those whom nothing else concerns; before them the later cause is the one that is told.
        """
        found: list[tuple[Cause, Any]] = []
        if self._over is not None:
            found.append((Cause.SHARE, (excess <= UNDER) & self._over))
        if self._policy.preemption:
            found.append((Cause.CLASS, self._level > level))
        found.append((Cause.LONGEST_WAIT, turn))
        if self._slicing:
            found.append((Cause.TIME_SLICE, self._clearly_ahead(score, left, self._score, self._left)))
        return found

    def _behind(self, newcomer: Newcomer) -> int:
        """How many come after it in the order: they are the first."""
        end = int(self._key.searchsorted(-newcomer.key))
        while end < len(self._key) and self._key[end] == -newcomer.key and self._number[end] < -newcomer.number:
            end += 1
        return end

    def _clearly_ahead(self, score: Any, left: Any, others_score: Any, others_left: Any) -> Any:
        """Whether newcomers of this score, with so much left, are far enough before others; of one, or of many."""
        if self._policy.order is Order.LAS:
            return (score < LAS_BEHIND) & (others_score >= LAS_BEHIND)
        ahead = AHEAD if self._policy.order is Order.FAIR else 1.0
        return (left + self._policy.preemption_cost * 1e6 < others_left) & (ahead * score < others_score)

    def _victim(self, at: int, cause: Cause) -> Victim:
        known = self._made.get((at, cause))
        if known is None:
            known = self._made[at, cause] = self._make(at, cause)
        return known

    def _make(self, at: int, cause: Cause) -> Victim:
        job = self._state.running[self._state.table.jobs[self._rows[at]]]
        saved_us = job.since_us if job.saved_us is None else max(job.saved_us, job.since_us)
        unsaved_us = max(self._now_us - saved_us, 0)
        return Victim(job, cause, -float(self._key[at]), float(self._score[at]), unsaved_us)


def _where(which: Bools) -> list[int]:
    found: list[int] = which.nonzero()[0].tolist()
    return found


def stoppable(state: "State", now_us: int, policy: Policy) -> Bools:
    """Which rows of the table are jobs that may be stopped at all: they can be, and have run for long enough."""
    columns = state.table.columns
    found: Bools = columns[Column.SPARED] <= now_us
    found &= columns[Column.SINCE] <= now_us - policy.min_run * 1_000_000
    return found
