"""The order of the queue, kept for a moment: to sort a hundred thousand jobs takes longer than all else of a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from service.scheduler.model.jobs import TenantAccount
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.order import order
from torchyard.ids import JobId
from torchyard.spec.policy import Policy

#: How long an order counts if nothing but the time has changed: jobs overtake each other over hours.
KEPT_US = 1_000_000


@dataclass(frozen=True)
class OrderedQueue:
    """The waiting jobs in their order; safe from many threads."""

    jobs: Sequence[JobId]

    @cached_property
    def places(self) -> Mapping[JobId, int]:
        """The place of each job, from 1; made once it is asked for."""
        return {job: place for place, job in enumerate(self.jobs, 1)}


class _LastOrder(NamedTuple):
    key: Any
    at_us: int
    queue: OrderedQueue


class KnownOrder:
    """The last order of one loader's states; safe from many threads."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Keep no order: the jobs of the last one may be over."""
        self._known = _LastOrder(None, 0, OrderedQueue(()))

    def of(self, state: SchedulerState, now_us: int, policy: Policy) -> OrderedQueue:
        """Return the waiting jobs in order; if nothing that it depends on has changed, as of at most `KEPT_US` ago."""
        key = (state.changes, policy, state.nodes, _usage(state.users), _usage(state.projects))
        known = self._known
        if known.key == key and 0 <= now_us - known.at_us < KEPT_US:
            return known.queue
        queue = OrderedQueue(order(state, now_us, policy))
        self._known = _LastOrder(key, now_us, queue)
        return queue


def _usage(accounts: Mapping[str, TenantAccount]) -> dict[str, tuple[float, float, int]]:
    """Return what of the accounts the order depends on: not what is left of a week, which changes with the time."""
    return {name: (account.weight, account.usage, account.usage_us) for name, account in accounts.items()}
