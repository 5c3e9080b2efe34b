"""Accounts of users, or projects, in a simulation: their usage and remaining quotas, as the policy reads them.

As in the live service: GPU time is charged when a job leaves its GPUs, usage is halved every half-life, and the GPU
time of the last seven days is kept by day: of the eighth day back, the part within the seven days counts.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from service.accounting.gpu_time import DAY_US, HOUR_US
from service.scheduler.model.jobs import TenantAccount
from service.simulator.trace import SECOND
from torchyard.api.sharing import Entitlement

WEEK_DAYS = 7
#: Remaining quotas of GPU-hours are renewed so often.
_EVERY_US = 60 * SECOND
_NOTHING = Entitlement()


class SimulatedAccounts:
    """Accounts of all users, or of all projects."""

    def __init__(self, limits: Mapping[str, Entitlement], begin_us: int, half_life_us: float) -> None:
        self._limits, self._half_life_us = limits, half_life_us
        #: GPU time by day of those who have a quota of GPU-hours.
        self._days: dict[str, Counter[int]] = {
            name: Counter() for name, own in limits.items() if own.max_gpu_hours is not None
        }
        self._due_us = begin_us
        #: Accounts for the policy; a name that is absent has no usage and no quota.
        self.known: dict[str, TenantAccount] = {name: self._account(name, 0.0, begin_us) for name in limits}

    @property
    def weekly(self) -> bool:
        """Return whether any has a quota of GPU-hours, so that passing time alone may let a job start."""
        return bool(self._days)

    def charge(self, name: str, gpus: float, start_us: int, end_us: int) -> None:
        """Charge the user or project for so many GPUs, held from `start_us` until now, `end_us`."""
        usage = gpus * (end_us - start_us) / SECOND
        old = self.known.get(name)
        if old is not None:
            usage += old.usage * 0.5 ** ((end_us - old.usage_us) / self._half_life_us)
        if name in self._days:
            self._add(self._days[name], gpus, start_us, end_us)
        self.known[name] = self._account(name, usage, end_us)

    def renew(self, now_us: int) -> None:
        """Update the remaining GPU-hours of the week, which grow as time passes."""
        if now_us < self._due_us:
            return
        self._due_us = now_us + _EVERY_US
        for name in self._days:
            left_us = self._left_us(name, self._limits[name].max_gpu_hours, now_us)
            self.known[name] = replace(self.known[name], week_left_us=left_us)

    def _account(self, name: str, usage: float, now_us: int) -> TenantAccount:
        own = self._limits.get(name, _NOTHING)
        return TenantAccount(
            weight=1.0 if own.weight is None else own.weight,
            usage=usage,
            usage_us=now_us,
            max_gpus=own.max_gpus,
            week_left_us=self._left_us(name, own.max_gpu_hours, now_us),
        )

    def _left_us(self, name: str, hours: float | None, now_us: int) -> int | None:
        if hours is None:
            return None
        today, elapsed = divmod(now_us, DAY_US)
        days, first = self._days[name], today - WEEK_DAYS
        for day in [day for day in days if day < first]:
            del days[day]
        used_us = sum(gpu_us for day, gpu_us in days.items() if day > first)
        return round(hours * HOUR_US) - used_us - days.get(first, 0) * (DAY_US - elapsed) // DAY_US

    @staticmethod
    def _add(days: Counter[int], gpus: float, start_us: int, end_us: int) -> None:
        # What is older counts no more.
        since_us = max(start_us, end_us - (WEEK_DAYS + 1) * DAY_US)
        while since_us < end_us:
            day = since_us // DAY_US
            until_us = min(end_us, (day + 1) * DAY_US)
            days[day] += round(gpus * (until_us - since_us))
            since_us = until_us
