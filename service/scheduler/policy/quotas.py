"""What users, projects and sweeps may still start. A job over its quota waits and blocks nobody."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from service.scheduler.model import parts
from service.scheduler.model.columns import Bools
from service.scheduler.model.jobs import Account
from service.scheduler.model.lanes import Lane
from service.scheduler.model.state import State
from service.scheduler.model.table import Column
from service.scheduler.model.tenants import Tenants

#: Quotas of GPU time are of so long.
WEEK_US = 7 * 86_400 * 1_000_000


class Quota(StrEnum):
    """A bound that somebody has reached."""

    USER_GPUS = "user-gpus"
    PROJECT_GPUS = "project-gpus"
    USER_WEEK = "user-week"
    PROJECT_WEEK = "project-week"
    SWEEP = "sweep"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """Why a quota forbids a start: so much is used of so much. GPUs, GPU-microseconds, or trials."""

    quota: Quota
    #: The user, project or sweep.
    whose: str
    used: float
    limit: float


@dataclass(kw_only=True, slots=True)
class _Budget:
    """What is left of one account."""

    account: Account
    gpus: int
    #: GPU time of what runs: so far, and with what it is expected to take still.
    had_us: float
    week_us: float

    def gpus_left(self) -> float:
        return math.inf if self.account.max_gpus is None else self.account.max_gpus - self.gpus

    def week_left(self, *, promised: bool) -> float:
        left = self.account.week_left_us
        return math.inf if left is None else left - (self.had_us if promised else self.week_us)


class Quotas:
    """What is left of all quotas while a decision hands it out.

    GPU time of the week is charged as it is used. So that several starts at once do not pass what is left, running
    jobs are charged with the time that they are known to need still, too; a job may start as long as something is
    left. For whom others were stopped it was enough when that was decided; what has started since then does not take
    it away again.
    """

    def __init__(self, state: State, now_us: int) -> None:
        self._state = state
        self._now_us = now_us
        lanes = state.lanes
        self._users = self._budgets(lanes.users, state.users, "user")
        self._projects = self._budgets(lanes.projects, state.projects, "project")
        #: Trials that each capped sweep may still start.
        self._trials = {group: cap - state.trials.get(group, 0) for group, cap in state.caps.items()}

    @property
    def bounded(self) -> bool:
        """Whether there is any quota at all."""
        return bool(self._users or self._projects or self._trials)

    def reached(self, lane: Lane, *, promised: bool = False) -> list[Reached]:
        """What forbids a job of the lane to start; empty if nothing does. `promised`: others were stopped for it."""
        if not self.bounded:
            return []
        user, project = self._users.get(lane.user), self._projects.get(lane.project)
        found = self._of(user, lane, (Quota.USER_GPUS, Quota.USER_WEEK), lane.user, promised=promised)
        found += self._of(project, lane, (Quota.PROJECT_GPUS, Quota.PROJECT_WEEK), lane.project, promised=promised)
        if lane.group is not None and self._trials.get(lane.group, 1) <= 0:
            cap = self._state.caps[lane.group]
            used = cap - self._trials[lane.group]
            found.append(Reached(quota=Quota.SWEEP, whose=lane.group, used=used, limit=cap))
        return found

    def forbid(self, lane: int, *, promised: bool = False) -> bool:
        """Whether a job of the lane of that number may not start."""
        return bool(self.reached(self._state.lanes.key(lane), promised=promised))

    def charge(self, lane: Lane, expected_us: float, rest: float = 0.0) -> None:
        """A job of the lane starts, and is expected to run for so long; `rest` of its GPUs is not its own (`parts`)."""
        for budget in (self._users.get(lane.user), self._projects.get(lane.project)):
            if budget is not None:
                budget.gpus += lane.gpus
                budget.week_us += (lane.gpus - rest) * expected_us
        if lane.group in self._trials:
            self._trials[lane.group] -= 1

    def _of(
        self, budget: _Budget | None, lane: Lane, quotas: tuple[Quota, Quota], whose: str, *, promised: bool
    ) -> list[Reached]:
        if budget is None or not lane.gpus:
            return []
        found, (gpus, week) = [], quotas
        if lane.gpus > budget.gpus_left():
            found.append(Reached(quota=gpus, whose=whose, used=budget.gpus, limit=budget.account.max_gpus or 0))
        if budget.week_left(promised=promised) <= 0:
            found.append(Reached(quota=week, whose=whose, used=budget.week_us, limit=budget.account.week_left_us or 0))
        return found

    def _budgets(self, tenants: Tenants, accounts: Mapping[str, Account], whose: str) -> dict[str, _Budget]:
        bounded = tenants.bounded(accounts)
        if not bounded:
            return {}
        budgets = {
            name: _Budget(account=account, gpus=tenants.gpus(name), had_us=0.0, week_us=0.0)
            for name, account in bounded.items()
        }
        for lane, (had_us, spent_us) in self._week_us().items():
            budget = budgets.get(getattr(lane, whose))
            if budget is not None:
                budget.had_us += had_us
                budget.week_us += spent_us
        return budgets

    def _week_us(self) -> dict[Lane, tuple[float, float]]:
        """GPU time of each lane's running jobs in the last seven days, and that with what they are known to need
        still.
        """
        table, lanes = self._state.table, self._state.lanes
        columns = table.columns
        rows = np.flatnonzero(columns[Column.RUNS])
        left = columns[Column.LEFT][rows] + self._now_us * columns[Column.SHRINKS][rows]
        had = np.clip(self._now_us - columns[Column.SINCE][rows], 0, WEEK_US)
        lane = table.lane[rows]
        gpus = lanes.gpus[lane].astype(np.float64)
        if self._state.sharing:
            sharing, others = parts.rests(self._state)
            gpus[rows.searchsorted(sharing)] -= others
        spent = had + np.nan_to_num(np.maximum(left, 0))
        had_us, spent_us = (
            np.bincount(lane, weights=time * gpus, minlength=len(lanes)).tolist() for time in (had, spent)
        )
        return {lane: (had_us[number], spent_us[number]) for lane, number in lanes.lanes.ids.items()}


def spent(quotas: Quotas, state: State) -> Bools:
    """Which lanes may start nothing."""
    found = np.zeros(len(state.lanes), dtype=bool)
    if quotas.bounded:
        for number in state.lanes.lanes.ids.values():
            found[number] = quotas.forbid(number)
    return found
