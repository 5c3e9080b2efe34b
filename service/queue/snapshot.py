"""The queue and the nodes at one moment, as the policy sees them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection

from service.accounting.policy_settings import current_policy
from service.db.engine import Database
from service.scheduler.model.state import SchedulerState
from service.scheduler_cache.known_order import OrderedQueue
from service.scheduler_cache.load import Loader
from torchyard.ids import JobId
from torchyard.spec.policy import Policy


@dataclass(frozen=True, kw_only=True)
class QueueSnapshot:
    """The policy's state at a moment, which others read too, and the order of the queue."""

    state: SchedulerState
    policy: Policy
    order: OrderedQueue
    now: int

    @property
    def queue(self) -> Sequence[JobId]:
        """The waiting jobs in the order of the queue."""
        return self.order.jobs


@contextmanager
def queue_snapshot(
    db: Database, loader: Loader, now: int, asked: JobId | None = None
) -> Iterator[tuple[Connection, QueueSnapshot]]:
    """Yield queue and nodes with a transaction that shows the same moment; the job `asked` about as it is now."""
    with loader.snapshot(db, now, asked) as (tx, state):
        policy = current_policy(tx)
        yield tx, QueueSnapshot(state=state, policy=policy, order=loader.order.of(state, now, policy), now=now)
