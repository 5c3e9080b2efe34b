"""Quotas of users, projects and sweeps. A job over its quota waits and blocks no other."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from service.scheduler.model import fractions
from service.scheduler.model.columns import Bools
from service.scheduler.model.equivalence import EquivalenceClass
from service.scheduler.model.jobs import TenantAccount
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from service.scheduler.model.tenants import Tenants

#: Period of the quotas of GPU time.
WEEK_US = 7 * 86_400 * 1_000_000


class QuotaKind(StrEnum):
    """Kind of a quota: GPUs at once or GPU time in a week of a user or project, or trials at once of a sweep."""

    USER_GPUS = "user-gpus"
    PROJECT_GPUS = "project-gpus"
    USER_WEEK = "user-week"
    PROJECT_WEEK = "project-week"
    SWEEP = "sweep"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """A quota that forbids a start, and how much of it is used: in GPUs, GPU-microseconds, or trials."""

    quota: QuotaKind
    #: The user, project or sweep.
    whose: str
    used: float
    limit: float


@dataclass(kw_only=True, slots=True)
class _Budget:
    """Quotas of one account, and what is charged to them."""

    account: TenantAccount
    gpus: int
    #: GPU time of its running jobs: so far, and with the time that they are expected to need still.
    had_us: float
    week_us: float

    def gpus_left(self) -> float:
        return math.inf if self.account.max_gpus is None else self.account.max_gpus - self.gpus

    def week_left(self, *, promised: bool) -> float:
        left = self.account.week_left_us
        return math.inf if left is None else left - (self.had_us if promised else self.week_us)


class RemainingQuotas:
    """Remaining quotas during one decision.

    GPU time of the week is charged as it is used. So that several starts at once do not exceed the quota, running jobs
    are charged with the time that they are known to need still, too; a job may start as long as something is left. A
    job that others were preempted for was within its quotas when that was decided; jobs started since then do not take
    that away again.
    """

    def __init__(self, state: SchedulerState, now_us: int) -> None:
        self._state = state
        self._now_us = now_us
        classes = state.classes
        self._users = self._budgets(classes.users, state.users, "user")
        self._projects = self._budgets(classes.projects, state.projects, "project")
        #: Trials that each capped sweep may still start.
        self._trials = {group: cap - state.trials.get(group, 0) for group, cap in state.caps.items()}

    @property
    def bounded(self) -> bool:
        """Return whether there is any quota at all."""
        return bool(self._users or self._projects or self._trials)

    def reached(self, equivalence: EquivalenceClass, *, promised: bool = False) -> list[Reached]:
        """Return the quotas that forbid a job of the class to start; empty if none does.

        `promised`: others were preempted for it.
        """
        if not self.bounded:
            return []
        user, project = self._users.get(equivalence.user), self._projects.get(equivalence.project)
        found = self._of(
            user, equivalence, (QuotaKind.USER_GPUS, QuotaKind.USER_WEEK), equivalence.user, promised=promised
        )
        found += self._of(
            project,
            equivalence,
            (QuotaKind.PROJECT_GPUS, QuotaKind.PROJECT_WEEK),
            equivalence.project,
            promised=promised,
        )
        if equivalence.group is not None and self._trials.get(equivalence.group, 1) <= 0:
            cap = self._state.caps[equivalence.group]
            used = cap - self._trials[equivalence.group]
            found.append(Reached(quota=QuotaKind.SWEEP, whose=equivalence.group, used=used, limit=cap))
        return found

    def forbid(self, class_id: int, *, promised: bool = False) -> bool:
        """Return whether a quota forbids a job of the equivalence class of that number to start."""
        return bool(self.reached(self._state.classes.key(class_id), promised=promised))

    def charge(self, equivalence: EquivalenceClass, expected_us: float, shareable: float = 0.0) -> None:
        """Charge the start of a job that is expected to run for so long; others may use `shareable` of its GPUs."""
        for budget in (self._users.get(equivalence.user), self._projects.get(equivalence.project)):
            if budget is not None:
                budget.gpus += equivalence.gpus
                budget.week_us += (equivalence.gpus - shareable) * expected_us
        if equivalence.group in self._trials:
            self._trials[equivalence.group] -= 1

    def _of(
        self,
        budget: _Budget | None,
        equivalence: EquivalenceClass,
        quotas: tuple[QuotaKind, QuotaKind],
        whose: str,
        *,
        promised: bool,
    ) -> list[Reached]:
        if budget is None or not equivalence.gpus:
            return []
        found, (gpus, week) = [], quotas
        if equivalence.gpus > budget.gpus_left():
            found.append(Reached(quota=gpus, whose=whose, used=budget.gpus, limit=budget.account.max_gpus or 0))
        if budget.week_left(promised=promised) <= 0:
            found.append(Reached(quota=week, whose=whose, used=budget.week_us, limit=budget.account.week_left_us or 0))
        return found

    def _budgets(self, tenants: Tenants, accounts: Mapping[str, TenantAccount], whose: str) -> dict[str, _Budget]:
        bounded = tenants.bounded(accounts)
        if not bounded:
            return {}
        budgets = {
            name: _Budget(account=account, gpus=tenants.gpus(name), had_us=0.0, week_us=0.0)
            for name, account in bounded.items()
        }
        for equivalence, (had_us, spent_us) in self._week_us().items():
            budget = budgets.get(getattr(equivalence, whose))
            if budget is not None:
                budget.had_us += had_us
                budget.week_us += spent_us
        return budgets

    def _week_us(self) -> dict[EquivalenceClass, tuple[float, float]]:
        """Return the GPU time of each class's running jobs, in microseconds: in the last seven days, and that with the
        time that they are known to need still.
        """
        table, classes = self._state.table, self._state.classes
        columns = table.columns
        rows = np.flatnonzero(columns[Column.RUNS])
        left = columns[Column.LEFT][rows] + self._now_us * columns[Column.SHRINKS][rows]
        had = np.clip(self._now_us - columns[Column.SINCE][rows], 0, WEEK_US)
        class_id = table.class_id[rows]
        gpus = classes.gpus[class_id].astype(np.float64)
        if self._state.sharing:
            sharing, others = fractions.shareable_by_row(self._state)
            gpus[rows.searchsorted(sharing)] -= others
        spent = had + np.nan_to_num(np.maximum(left, 0))
        had_us, spent_us = (
            np.bincount(class_id, weights=time * gpus, minlength=len(classes)).tolist() for time in (had, spent)
        )
        return {equivalence: (had_us[number], spent_us[number]) for equivalence, number in classes.interner.ids.items()}


def spent(quotas: RemainingQuotas, state: SchedulerState) -> Bools:
    """Return which equivalence classes are over a quota, so that none of their jobs may start."""
    found = np.zeros(len(state.classes), dtype=bool)
    if quotas.bounded:
        for number in state.classes.interner.ids.values():
            found[number] = quotas.forbid(number)
    return found
