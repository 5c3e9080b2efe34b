"""A filter that rules out waiting jobs that can neither start nor preempt in this decision any more.

Feasibility only ever shrinks during a decision: fewer and fewer devices are free, and fewer and fewer jobs can be
preempted. So once one job was refused, all jobs that need the same and could not have got more are ruled out with it,
and a decision tries few jobs even if a hundred thousand wait.
"""

from typing import Any

import numpy as np

from service.scheduler.model.columns import Bools, Ints
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from service.scheduler.policy.order import Ranking
from service.scheduler.policy.preemption import UNDER

#: Most jobs that are tried in vain because the devices that they would fit on are held or reserved.
TRIES = 256


class FeasibilityFilter:
    """Flags of each equivalence class: whether its jobs may still start, preempt others, or hold nodes."""

    def __init__(self, state: SchedulerState, free: int, spent: Bools) -> None:
        self._state = state
        #: No quota stands in its way.
        self.open: Bools = ~spent
        #: A job of it may fit somewhere; `free` is the most that is free on one node.
        self.fitting: Bools = (state.classes.whole <= free) & self.open
        self._preempting: Bools = self.open.copy()
        self._holding: Bools = self.open.copy()
        #: A job of it fits only on devices that are held or reserved, which it may take if it ends by `deadline_us`.
        self._held_only: Bools = np.zeros(len(state.classes), dtype=bool)
        self.deadline_us = 0.0
        self._tries = 0
        self._refusals: _Refusals | None = None

    def set_ranking(self, ranking: Ranking, might_preempt: Bools, now_us: int) -> None:
        """Set the ranking of the rows, and which of them might preempt a job."""
        self._ranking, self._might_preempt, self._now_us = ranking, might_preempt, now_us
        self.class_id, self._bound = self._state.table.class_id, self._state.table.columns[Column.BOUND]
        #: Rows for which nodes are held.
        self.hold_owners: Bools = np.zeros(len(might_preempt), dtype=bool)

    def feasible(self, rows: Ints) -> Bools:
        """Return which of the rows are still feasible: they may start, preempt or hold."""
        class_id = self.class_id[rows]
        found: Bools = self.may_start(rows, class_id) | self.may_preempt(rows, class_id) | self.may_hold(rows, class_id)
        return found

    def may_start(self, row: Any, class_id: Any) -> Any:
        """Return whether the row's job may still fit somewhere; for one row or many, as all that take `Any`."""
        fitting = self.fitting[class_id]
        return fitting & (~self._held_only[class_id] | self._may_take_held(row)) if self._tries else fitting

    def may_preempt(self, row: Any, class_id: Any) -> Any:
        """Return whether the row's job may still preempt another."""
        found = self._might_preempt[row] & self._preempting[class_id]
        return found if self._refusals is None else found & ~self._refused(self._refusals, row, class_id)

    def may_hold(self, row: Any, class_id: Any) -> Any:
        """Return whether nodes may be held for the row's job, because it is its turn."""
        return self._ranking.turns and self._ranking.turn[row] & self._holding[class_id]

    def quota_reached(self, class_id: int) -> None:
        """Rule out the equivalence class: no more of its jobs may start."""
        for possible in (self.open, self.fitting, self._preempting, self._holding):
            possible[class_id] = False

    def no_capacity(self, class_id: int) -> None:
        """Rule out starts of all jobs that need the same: no free devices suffice, whatever is held or reserved."""
        self.fitting[self._alike(class_id)] = False

    def only_held_capacity(self, class_id: int) -> None:
        """Note that only nodes that are held or reserved would suffice."""
        self._held_only[class_id] = True
        self._tries += 1
        if self._tries >= TRIES:
            self.fitting[:] = False

    def nobody_to_stop(self, row: int, class_id: int, *, bound: bool) -> None:
        """Rule out preemption for the jobs behind the row that need the same and could preempt no others than it could.

        - They are of no tenant within its share, if the row's own tenant is not.
        - It is not their turn, unless it is the row's turn.
        - They score no better, by the order and by the time that is left.

        With something held or reserved (`bound`) that is sure for the row's own equivalence class alone, and there for
        the jobs that must stay out of what is held.
        """
        if bound:
            alike: Bools = np.zeros(len(self.open), dtype=bool)
            alike[class_id] = True
        else:
            alike = self._alike(class_id)
            if self._ranking.worst[class_id] > UNDER:
                alike &= self._ranking.worst > UNDER
        refusals = self._refusals = self._refusals or _Refusals(len(self.open))
        in_turn = bool(self._ranking.turn[row])
        refusals.score[alike] = -np.inf if in_turn else self._ranking.score[row]
        refusals.left[alike] = -np.inf if in_turn else self._ranking.left[row]
        refusals.held_only[alike] = bound
        if in_turn and not bound:
            refusals.in_turn[alike] = True

    def _refused(self, refusals: "_Refusals", row: Any, class_id: Any) -> Any:
        """Return whether a job before the row that could preempt all that it could has found none."""
        score, left, in_turn = self._ranking.score[row], self._ranking.left[row], self._ranking.turn[row]
        no_better = (score >= refusals.score[class_id]) & (left >= refusals.left[class_id]) & ~in_turn
        excepted = refusals.held_only[class_id] & self._may_take_held(row)
        return (no_better & ~excepted) | (in_turn & refusals.in_turn[class_id])

    def _may_take_held(self, row: Any) -> Any:
        """Return whether the row's job may have what is held or reserved."""
        return (self._now_us + self._bound[row] <= self.deadline_us) | self.hold_owners[row]

    def nothing_to_keep(self, class_id: int) -> None:
        """Note that all nodes that the equivalence class could use are held already."""
        self._holding[self._alike(class_id)] = False

    def _alike(self, class_id: int) -> Bools:
        """Return which equivalence classes need the same resources on as many nodes."""
        kind = self._state.classes.kind
        found: Bools = kind == kind[class_id]
        return found


class _Refusals:
    """Jobs of each equivalence class that have found no job to preempt."""

    def __init__(self, classes: int) -> None:
        #: Score and remaining time of the last that found none: those that are no better in both find none either.
        self.score, self.left = np.full(classes, np.inf), np.full(classes, np.inf)
        #: The refusal holds only for jobs that may not use held or reserved devices.
        self.held_only: Bools = np.zeros(classes, dtype=bool)
        #: No job is left to preempt even for those whose turn it is.
        self.in_turn: Bools = np.zeros(classes, dtype=bool)
