"""Choice of the running jobs that are preempted for a job that fits on no free devices.

Only jobs that can be preempted, have run for `min_run`, and come *after* the preemptor in the order. One of these must
be true as well:

- the preemptor is overdue, and it is its turn (`order`);
- they are of a lower class (`preemption`);
- their user or project is over its share, and the preemptor's are not (`preemption`);
- `time_slice` is set and the preemptor is clearly ahead: it has no estimate yet, or its score is `AHEAD` times better
  and it gains more than a preemption costs. No work is thrown away for this: a job that would start from the beginning
  is left alone, except in its trial (`trials`). And only jobs take time slices that can be preempted themselves: one
  that forbids it (`pinned`) would keep the resources for good.

No job is preempted unless the preemptor then really starts: its placement is tried on the freed nodes first. As few as
possible are preempted: first jobs of lower classes, by the least work since their last checkpoint; then, for a time
slice, from the end of the order, since a job that is not last would preempt others in turn; then those that are only
over their share, by the least work again.

Decisions converge: each preemption puts a job in the place of jobs that all come after it in one total order, which
preempting and starting do not change. With the running jobs sorted by that order, each decision improves the list at
the first place where it changes, and there are finitely many such lists.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from service.scheduler.model.capacity import NodeCapacity
from service.scheduler.model.columns import Bools, Floats, Ints
from service.scheduler.model.decisions import Cause
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from service.scheduler.policy.order import LAS_BEHIND, Ranking
from service.scheduler.policy.placement import ClusterCapacity, PlacementRequest
from service.scheduler.policy.trials import on_trial, tries
from service.scheduler.policy.victims import PreemptionPlan, Victim, on_one_node, on_several
from torchyard.ids import JobId
from torchyard.spec.policy import Order, Policy

#: A running job is preempted for one whose score is so many times better.
AHEAD = 1.25
#: Excess above which a victim's tenant must be, and up to which the preemptor's may be.
OVER, UNDER = 1.1, 1.0
#: Who began farther ahead began before the clock was set back, and is not spared until then; clocks may differ by less.
SKEW_US = 60 * 1_000_000


class Victims:
    """The running jobs that can be preempted at all, as of one moment, from the end of the order."""

    def __init__(self, state: SchedulerState, ranking: Ranking, stoppable: Bools, now_us: int, policy: Policy) -> None:
        self._state, self._ranks, self._now_us, self._policy = state, ranking, now_us, policy
        number = state.table.columns[Column.NUMBER]
        rows: Ints = (stoppable & ~ranking.turn if ranking.turns else stoppable).nonzero()[0]
        self._rows = rows = rows[np.lexsort((number[rows], ranking.key[rows]))[::-1]]
        self._key, self._number = ranking.key[rows], number[rows]
        self._level, self._score, self._left = ranking.level[rows], ranking.score[rows], ranking.left[rows]
        over: Bools = ranking.worst[state.table.class_id[rows]] > OVER
        self._over = over if policy.preemption and np.count_nonzero(over) else None
        self._several_priorities = policy.preemption and ranking.several_priorities
        self._slicing = policy.time_slice is not None and policy.order not in {Order.FIFO, Order.SJF}
        #: Victims that are not chosen yet; None before the first is chosen.
        self._open: Bools | None = None
        #: Rows of preemptors that were checked together, and the victims that they may preempt.
        self._together: list[int] = []
        self._found: list[tuple[Cause, Bools]] = []
        self._made: dict[tuple[int, Cause], Victim] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def might(self) -> Bools:
        """Return which jobs might preempt some victim: a first cheap filter, which rules out no job that may."""
        ranking = self._ranks
        found, lowest = ranking.turn.copy(), np.maximum.reduce(self._level)
        if self._several_priorities:
            found |= ranking.level < lowest
        if self._over is not None:
            last = self._key[self._over.argmax()]
            found |= (ranking.worst[self._state.table.class_id] <= UNDER) & (ranking.key <= last)
        if self._slicing:
            score, left = np.maximum.reduce(self._score), np.maximum.reduce(self._left)
            found |= (ranking.level <= lowest) & self._clearly_ahead(ranking.score, ranking.left, score, left)
        return found

    def suffice(self, rows: Ints, capacities: Mapping[str, NodeCapacity]) -> Bools:
        """Return which of these waiting jobs would have enough GPUs if all victims that they may preempt were gone.

        A finer filter than `might`, which rules out no job that could start either: it counts GPUs, whichever they are.
        """
        classes, class_id, column = self._state.classes, self._state.table.class_id[rows], rows[:, None]
        self._together, self._found = rows.tolist(), self._whom(column, class_id[:, None])
        if not self._found:
            return np.zeros(len(rows), dtype=bool)
        going = reduce(np.logical_or, (whom for _, whom in self._found))
        if self._open is not None:
            going = going & self._open
        free = [len(capacity.free) for capacity in capacities.values()]
        could = going @ self._held(list(capacities)) + free >= classes.whole[class_id][:, None]
        found: Bools = np.add.reduce(could, axis=1) >= classes.nodes[class_id]
        return found

    def _held(self, nodes: Sequence[str]) -> Floats:
        """Return how many GPUs each victim has on each node, shape (victims, nodes)."""
        at = {node: number for number, node in enumerate(nodes)}
        held = np.zeros((len(self._rows), len(nodes)))
        for victim, row in enumerate(self._rows.tolist()):
            for placement in self._state.running[self._state.table.jobs[row]].placements:
                if placement.node in at:
                    held[victim, at[placement.node]] = len(placement.uuids)
        return held

    def stop(self, jobs: Iterable[JobId]) -> None:
        """Note that the jobs are chosen, so that they are not chosen again."""
        for job in jobs:
            others = self._rows != self._state.table.rows[job]
            self._open = others if self._open is None else self._open & others

    def plan(
        self, request: PlacementRequest, row: int, class_id: int, cluster: ClusterCapacity
    ) -> PreemptionPlan | None:
        """Return the cheapest plan after which the job of that row starts; None if there is none."""
        by_node: dict[str, list[Victim]] = {}
        for victim in self._of(row, class_id):
            for placement in victim.job.placements:
                by_node.setdefault(placement.node, []).append(victim)
        if not by_node:
            return None
        plan = on_several if request.nodes > 1 else on_one_node
        return plan(request, by_node, cluster)

    def _of(self, row: int, class_id: int) -> list[Victim]:
        """Return the victims that the job may preempt, in the order in which they are chosen."""
        found: dict[int, Victim] = {}
        for cause, whom in self._whom_known(row, class_id):
            for at in (whom if self._open is None else whom & self._open).nonzero()[0].tolist():
                victim = self._victim(at, cause)
                if cause is not Cause.TIME_SLICE or not victim.job.starts_over or on_trial(victim.job, self._now_us):
                    found[at] = victim
        return [found[at] for at in sorted(found, key=lambda at: (*found[at].turn, at))]

    def _whom_known(self, row: int, class_id: int) -> list[tuple[Cause, Bools]]:
        """Return the same as `_whom`, from the results of `suffice` if it has covered the row."""
        if row not in self._together:
            return self._whom(row, class_id)
        at = self._together.index(row)
        return [(cause, whom[at]) for cause, whom in self._found]

    def _whom(self, row: Any, class_id: Any) -> list[tuple[Cause, Bools]]:
        """Return the victims that a preemptor may preempt, by cause; for one preemptor, or for a column of them.

        Where several causes apply to a victim, the last one counts.
        """
        ranking = self._ranks
        key = ranking.key[row]
        # Only jobs that come after it in the order.
        after, equal = self._key > key, self._key == key
        if np.count_nonzero(equal):
            after |= equal & (self._number > self._state.table.columns[Column.NUMBER][row])
        found: list[tuple[Cause, Bools]] = []
        if self._over is not None:
            found.append((Cause.SHARE, after & self._over & (ranking.worst[class_id] <= UNDER)))
        if self._slicing:
            ahead = self._clearly_ahead(ranking.score[row], ranking.left[row], self._score, self._left)
            found.append((Cause.TIME_SLICE, after & ahead))
        if self._several_priorities:
            found.append((Cause.CLASS, after & (self._level > ranking.level[row])))
        if ranking.turns:
            found.append((Cause.LONGEST_WAIT, after & ranking.turn[row]))
        return found

    def _clearly_ahead(self, score: Any, left: Any, others_score: Any, others_left: Any) -> Any:
        """Return whether preemptors of this score and remaining time are clearly ahead of others; for one, or many."""
        if self._policy.order is Order.LAS:
            return (score < LAS_BEHIND) & (left < math.inf) & (others_score >= LAS_BEHIND)
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
        return Victim.of(job, cause, float(self._score[at]), unsaved_us)


def in_the_way(state: SchedulerState, ranking: Ranking, jobs: Iterable[JobId]) -> bool:
    """Return whether one of these running jobs comes after one that waits: no other is ever preempted."""
    table = state.table
    first = np.minimum.reduce(ranking.key[table.queued()], initial=math.inf)
    return any(ranking.key[table.rows[job]] >= first for job in jobs)


def stoppable(state: SchedulerState, now_us: int, policy: Policy) -> Bools:
    """Return which rows of the table may be preempted at all: they can be, now, and have run for long enough."""
    columns = state.table.columns
    until_us = now_us if tries(policy) else math.inf
    since, spared = columns[Column.SINCE], columns[Column.SPARED]
    ready: Bools = (spared <= now_us) & (since <= now_us - policy.min_run * 1_000_000)
    ready |= (since > now_us + SKEW_US) & (spared < math.inf)
    ready &= columns[Column.UNTIL] >= until_us
    return ready
