"""A filter that rules out waiting jobs that cannot get anything in this decision any more.

Feasibility only ever shrinks while a decision is made: less and less is free, and fewer and fewer jobs can be
preempted. So once one job was refused something, all jobs that need the same and could not have got more are ruled
out with it, and a decision looks at few jobs even if a hundred thousand wait.
"""

from typing import Any

import numpy as np

from service.scheduler.model.columns import Bools, Ints
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from service.scheduler.policy.order import Ranking
from service.scheduler.policy.preemption import UNDER

#: So many jobs are tried in vain that would fit, but for what is held or reserved.
TRIES = 256


class FeasibilityFilter:
    """Per equivalence class: may its jobs still start, preempt others, or have nodes held for them?"""

    def __init__(self, state: SchedulerState, free: int, spent: Bools) -> None:
        self._state = state
        #: No quota stands in its way.
        self.open: Bools = ~spent
        #: A job of it may fit somewhere; `free` is the most that is free on one node.
        self.fitting: Bools = (state.classes.whole <= free) & self.open
        self._preempting: Bools = self.open.copy()
        self._holding: Bools = self.open.copy()
        #: A job of it fits only if it is over by `deadline_us`: what else there is is held or reserved.
        self._tight: Bools = np.zeros(len(state.classes), dtype=bool)
        self.deadline_us = 0.0
        self._tries = 0
        self._refusals: _Refusals | None = None

    def look(self, ranking: Ranking, might: Bools, now_us: int) -> None:
        """What is known of the rows, and which of them might stop somebody."""
        self._turn, self._might, self._ranks, self._now_us = ranking.turn, might, ranking, now_us
        self._turns = ranking.turns
        self.class_id, self._bound = self._state.table.class_id, self._state.table.columns[Column.BOUND]
        #: Rows for which nodes are held.
        self.hold_owners: Bools = np.zeros(len(might), dtype=bool)

    def of(self, rows: Ints) -> Bools:
        """Return which of the rows are still feasible: they may start, preempt or hold."""
        class_id = self.class_id[rows]
        found = self.fitting[class_id]
        if self._tries:
            found &= ~self._tight[class_id] | self._passes(rows)
        preempting = self._might[rows]
        preempting &= self._preempting[class_id]
        if self._refusals is not None:
            preempting &= ~self._refused(self._refusals, rows, class_id)
        found |= preempting
        if self._turns:
            found |= self._turn[rows] & self._holding[class_id]
        return found

    def may_start(self, row: int, class_id: int) -> bool:
        """Return whether the row's job may still fit somewhere."""
        return bool(self.fitting[class_id]) and bool(not self._tight[class_id] or self._passes(row))

    def may_preempt(self, row: int, class_id: int) -> bool:
        """Return whether the row's job may still preempt somebody."""
        if not (self._might[row] and self._preempting[class_id]):
            return False
        return self._refusals is None or not self._refused(self._refusals, row, class_id)

    def may_hold(self, row: int, class_id: int) -> bool:
        """Return whether nodes may be held for the row's job, because it is its turn."""
        return self._turns and bool(self._turn[row] and self._holding[class_id])

    def quota_reached(self, class_id: int) -> None:
        """Nothing more of the equivalence class starts."""
        for possible in (self.open, self.fitting, self._preempting, self._holding):
            possible[class_id] = False

    def no_room(self, class_id: int) -> None:
        """Nothing is free that would do, whoever asks."""
        self.fitting[self._alike(class_id)] = False

    def no_room_beside(self, class_id: int) -> None:
        """Note that only nodes that are held or reserved would do."""
        self._tight[class_id] = True
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
            if self._ranks.worst[class_id] > UNDER:
                alike &= self._ranks.worst > UNDER
        refusals = self._refusals
        if refusals is None:
            refusals = self._refusals = _Refusals(len(self.open))
        turn = bool(self._turn[row])
        refusals.score[alike] = -np.inf if turn else self._ranks.score[row]
        refusals.left[alike] = -np.inf if turn else self._ranks.left[row]
        refusals.held_only[alike] = bound
        if turn and not bound:
            refusals.turned[alike] = True

    def _refused(self, refusals: "_Refusals", row: Any, class_id: Any) -> Any:
        """Whether one before the row that could stop all that it could has found nobody; of one row, or of many."""
        score, left = self._ranks.score[row], self._ranks.left[row]
        behind = (score >= refusals.score[class_id]) & (left >= refusals.left[class_id]) & ~self._turn[row]
        return (behind & ~(refusals.held_only[class_id] & self._passes(row))) | (
            self._turn[row] & refusals.turned[class_id]
        )

    def _passes(self, row: Any) -> Any:
        """Return whether the row may have what is held or reserved; for one row, or for many."""
        return (self._now_us + self._bound[row] <= self.deadline_us) | self.hold_owners[row]

    def nothing_to_keep(self, class_id: int) -> None:
        """Note that all nodes that the equivalence class could use are held already."""
        self._holding[self._alike(class_id)] = False

    def _alike(self, class_id: int) -> Bools:
        """The equivalence classes that need the same of as many nodes."""
        kind = self._state.classes.kind
        found: Bools = kind == kind[class_id]
        return found


class _Refusals:
    """Of each equivalence class: what is known of those who find nobody to stop."""

    def __init__(self, classes: int) -> None:
        #: The last that found nobody: those behind it that count as long find nobody either.
        self.score, self.left = np.full(classes, np.inf), np.full(classes, np.inf)
        #: That is sure only of those that may not have what is held or reserved.
        self.held_only: Bools = np.zeros(classes, dtype=bool)
        #: Nobody is left to stop for those whose turn it is.
        self.turned: Bools = np.zeros(classes, dtype=bool)
