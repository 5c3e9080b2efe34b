"""The order of the queue is kept only while it holds."""

from dataclasses import replace

from service.scheduler.model.jobs import TenantAccount
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.order import order
from service.scheduler_cache.known_order import KEPT_US, KnownOrder
from tests.unit.service.scheduler.worlds import HOUR, NOW, job, known, node_info, state
from torchyard.spec.policy import Order, Policy


def world() -> SchedulerState:
    """Two users' jobs of one length."""
    jobs = [job(number, user=user, remaining=known(HOUR)) for number, user in ((1, "ann"), (2, "joe"), (3, "ann"))]
    return state(node_info(), *jobs, users={"ann": TenantAccount(), "joe": TenantAccount()})


def test_what_has_not_changed_is_not_sorted_again() -> None:
    orders, one = KnownOrder(), world()
    first = orders.of(one, NOW, Policy())
    assert first.jobs == ["j1", "j2", "j3"]
    assert first.places == {"j1": 1, "j2": 2, "j3": 3}
    assert orders.of(one.copy(), NOW + KEPT_US - 1, Policy()) is first
    assert orders.of(one, NOW + KEPT_US, Policy()) is not first
    assert orders.of(one, NOW - 1, Policy()) is not first


def test_whatever_changes_the_order_is_seen_at_once() -> None:
    orders, one = KnownOrder(), world()
    orders.of(one, NOW, Policy())
    one.put([replace(one.waiting["j3"], priority=3)])
    assert orders.of(one, NOW, Policy()).jobs == ["j3", "j1", "j2"]
    one.remove("j3")
    assert orders.of(one, NOW, Policy()).jobs == ["j1", "j2"]
    one.users = {"ann": TenantAccount(usage=1e6, usage_us=NOW), "joe": TenantAccount()}
    assert orders.of(one, NOW, Policy()).jobs == order(one, NOW, Policy()) == ["j2", "j1"]
    assert orders.of(one, NOW, Policy(order=Order.FIFO)).jobs == ["j1", "j2"]
