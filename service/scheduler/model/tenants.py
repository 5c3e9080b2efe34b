"""Tenants (users, or projects) of the known jobs, and the GPUs that run for each."""

from collections.abc import Mapping
from math import exp2

import numpy as np

from service.scheduler.model.columns import Floats
from service.scheduler.model.interning import Interner
from service.scheduler.model.jobs import TenantAccount

#: GPU-seconds added for each unit of weight.
HEAD_START = 3600.0


class Tenants:
    """Users, or projects, by number; each is kept as long as it has an equivalence class of jobs."""

    def __init__(self) -> None:
        self.names: Interner[str] = Interner()
        #: By number: GPUs that run for it now, and the sum over them of the moments at which they were allocated.
        self._gpus: list[int] = []
        self._begun: list[int] = []

    def take(self, name: str) -> int:
        """Count one more equivalence class of the tenant and return the tenant's number."""
        number = self.names.take(name)
        if number == len(self._gpus):
            self._gpus.append(0)
            self._begun.append(0)
        return number

    def drop(self, number: int) -> None:
        """Count one equivalence class less of the tenant of that number."""
        self.names.drop(number)

    def count(self, number: int, gpus: int, since_us: int) -> None:
        """Count so many more GPUs that have run for the tenant since `since_us`; fewer if negative."""
        self._gpus[number] += gpus
        self._begun[number] += gpus * since_us

    def gpus(self, name: str) -> int:
        """Return the number of GPUs that run for the tenant."""
        return self._gpus[self.names.ids[name]]

    def bounded(self, accounts: Mapping[str, TenantAccount]) -> dict[str, TenantAccount]:
        """Return the accounts of the tenants that have a quota."""
        found = {}
        for name in self.names.ids:
            account = accounts.get(name)
            if account is not None and account.bounded:
                found[name] = account
        return found

    def excess(
        self, accounts: Mapping[str, TenantAccount], others_us: Mapping[str, float], now_us: int, half_life_us: float
    ) -> Floats:
        """Return each tenant's usage divided by its fair share (`policy.shares`), by number.

        `others_us` is the GPU time, in microseconds, of the part of its shared GPUs that others may use (`fractions`).
        """
        ids, gpus, begun = self.names.ids, self._gpus, self._begun
        found = [1.0] * len(self.names)
        if len(ids) < 2:
            return np.array(found)
        had, weights = [], []
        for name, number in ids.items():
            weight, runs = 1.0, (gpus[number] * now_us - begun[number]) / 1e6
            if others_us and name in others_us:
                runs -= others_us[name] / 1e6
            runs = max(runs, 0.0)  # they seem to begin in the future where the clock was set back
            account = accounts.get(name)
            if account is not None:
                weight = account.weight
                runs += account.usage * exp2(min(0, account.usage_us - now_us) / half_life_us)
            weights.append(weight)
            had.append(runs + HEAD_START * weight)
        fair = sum(had) / sum(weights)
        for number, runs, weight in zip(ids.values(), had, weights, strict=True):
            found[number] = runs / (fair * weight)
        return np.array(found)

    def copy(self) -> "Tenants":
        """Return a copy that later changes of this one do not touch."""
        other = Tenants()
        other.names = self.names.copy()
        other._gpus, other._begun = self._gpus.copy(), self._begun.copy()
        return other
