"""Jobs that later ones must not delay in one decision, and when nodes are held for them (`HoldKind`).

A decision calls `begin`, then for each job in the order `may_overtake` and `protect_from` before it is tried, and
`wait` if it was tried in vain. The first blocked job is found on the way: the first to be tried in vain, or to become
infeasible. Nodes are held only once a later job comes that could take them; most decisions see none.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from service.scheduler.model.columns import Bools, Floats, Ints
from service.scheduler.model.decisions import PutBack
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from service.scheduler.policy.backfill import Need, hold_nodes, oldest_since
from service.scheduler.policy.feasibility import FeasibilityFilter
from service.scheduler.policy.order import PATIENCE, PERIOD_US, Ranking
from service.scheduler.policy.placement import ClusterCapacity, HoldKind, PlacementRequest
from service.scheduler.policy.put_back import JobsOnTrial
from service.scheduler.policy.quotas import RemainingQuotas
from service.scheduler.policy.requests import placement_request, preempts
from torchyard.spec.policy import Policy


class Blocked:
    """The first blocked job, the oldest overdue one, and overdue ones in their turn."""

    def __init__(
        self,
        state: SchedulerState,
        now_us: int,
        policy: Policy,
        ranking: Ranking,
        feasibility: FeasibilityFilter,
        quotas: RemainingQuotas,
        cluster: ClusterCapacity,
        reservation_starts_us: Sequence[int],
    ) -> None:
        self._state, self._now_us, self._policy, self._ranking = state, now_us, policy, ranking
        self._feasibility, self._quotas, self._cluster = feasibility, quotas, cluster
        self._reservation_starts_us = reservation_starts_us
        #: Rows for whose jobs nodes are still to be held.
        self._pending: list[tuple[int, HoldKind]] = []
        self._first_blocked: int | None = None
        self._on_trial = JobsOnTrial(state, now_us, policy, ranking)
        #: Infeasible rows, as far as one of them may be the first blocked job, and the first of them.
        self._infeasible: Ints = np.zeros(0, dtype=np.intp)
        self._first_infeasible: int | None = None

    def begin(self, rows: Ints, feasible: Bools) -> None:
        """Set the rows that wait, and which of them are feasible."""
        self._set_deadline()
        overdue = rows[self._ranking.overdue[rows]]
        oldest = self._first_of(overdue, -self._state.table.columns[Column.AGE][overdue])
        if oldest is not None:
            kind = HoldKind.TURN if self._ranking.turn[oldest] else HoldKind.OLDEST_OVERDUE
            self._pending.append((oldest, kind))
        self.note_infeasible(rows[~feasible])

    def feasible(self, rows: Ints) -> Bools:
        """Return which of the rows are still feasible."""
        found = self._feasibility.feasible(rows)
        self.note_infeasible(rows[~found])
        return found

    def note_infeasible(self, rows: Ints) -> None:
        """Note rows that are not tried: one of them is the first blocked job unless another comes before it."""
        if self._first_blocked is not None:
            return
        if self._quotas.bounded:
            rows = self._infeasible = np.append(self._infeasible, rows)
        elif self._first_infeasible is not None:
            rows = np.append(rows, self._first_infeasible)
        self._first_infeasible = self._first_of(rows, self._ranking.hold_key[rows])

    def may_overtake(self, row: int) -> bool:
        """Return whether the row's job may be tried: no job before it is blocked, or the policy backfills."""
        if self._first_blocked is None:
            ranking, number = self._ranking, self._state.table.columns[Column.NUMBER]
            first = self._infeasible_within_quotas()
            if first is None or (ranking.hold_key[first], number[first]) > (ranking.key[row], number[row]):
                return True
            self._block(first)
        return self._policy.backfill

    def protect_from(self, request: PlacementRequest) -> None:
        """Hold nodes for the blocked jobs if this one, which comes after them, could take these nodes from them."""
        if any(
            self._state.table.jobs[row] != request.job and not (request.preemptible and kind is not HoldKind.TURN)
            for row, kind in self._pending
        ):
            self._hold_pending()

    def wait(self, row: int, class_id: int) -> bool:
        """Note that the row's job was tried in vain; return False if no job after it may start."""
        if self._ranking.turn[row]:
            if not hold_nodes(self._cluster, self._state, self._need(row, HoldKind.TURN)):
                self._feasibility.nothing_to_keep(class_id)
            self._set_deadline()
        elif self._first_blocked is None and self._ranking.hold_key[row] > self._ranking.key[row]:
            self.note_infeasible(np.array([row]))
            return True
        elif self._first_blocked is None:
            self._block(row)
        return self._policy.backfill

    def put_back(self) -> list[PutBack]:
        """Return the jobs on trial that are put back because their devices are held; call it after all else."""
        if not self._on_trial.judged():
            return []
        if self._first_blocked is None and (first := self._infeasible_within_quotas()) is not None:
            self._block(first)
        self._hold_pending()
        return self._on_trial.put_back(self._cluster)

    def _block(self, row: int) -> None:
        self._first_blocked = row
        self._pending.append((row, HoldKind.FIRST_BLOCKED))

    def _hold_pending(self) -> None:
        for row, kind in self._pending:
            hold_nodes(self._cluster, self._state, self._need(row, kind))
            self._feasibility.hold_owners[row] = True
        self._pending = []
        self._set_deadline()

    def _infeasible_within_quotas(self) -> int | None:
        """Return the first infeasible row that is still within its quotas: jobs started since may have used them up."""
        classes = self._feasibility.class_id
        while (first := self._first_infeasible) is not None and self._quotas.forbid(class_id := int(classes[first])):
            self._feasibility.quota_reached(class_id)
            self._first_infeasible = self._first_of(self._infeasible, self._ranking.hold_key[self._infeasible])
        return self._first_infeasible

    def _first_of(self, rows: Ints, keys: Floats) -> int | None:
        """Return the first, by these keys and then by number, of the rows within their quotas; None without any."""
        if self._quotas.bounded:
            free = self._feasibility.open[self._feasibility.class_id[rows]]
            rows, keys = rows[free], keys[free]
        if not len(rows):
            return None
        rows = rows[keys == np.minimum.reduce(keys)]
        return int(rows[np.argmin(self._state.table.columns[Column.NUMBER][rows])])

    def _set_deadline(self) -> None:
        """Tell the filter by when a job must end to have what is held or reserved."""
        holds = self._cluster.holds.values()
        ends = [end for one in holds for end in (one.until_us, one.expected_end_us, one.turn_us) if end < math.inf]
        self._feasibility.deadline_us = max([*ends, *self._reservation_starts_us], default=0.0)

    def _need(self, row: int, kind: HoldKind) -> Need:
        job = self._state.waiting[self._state.table.jobs[row]]
        may_preempt = preempts(self._policy) and kind is not HoldKind.FIRST_BLOCKED
        need = Need(
            request=placement_request(job, self._now_us, self._policy),
            now_us=self._now_us,
            kind=kind,
            may_preempt=may_preempt,
            put_back=self._on_trial.behind(row, kind),
        )
        if kind is not HoldKind.OLDEST_OVERDUE:
            return need
        longest_us = self._policy.longest_wait * 1e6
        return replace(
            need,
            oldest_since_us=oldest_since(job, self._state, longest_us, may_preempt=may_preempt),
            patience_us=(self._now_us - job.eligible_us - job.ran_us) / PATIENCE,
            turn_us=(self._now_us // PERIOD_US + 1) * PERIOD_US,
        )
