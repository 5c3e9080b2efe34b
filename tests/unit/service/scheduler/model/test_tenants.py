"""What tenants have had of their shares."""

from service.scheduler.model.jobs import TenantAccount
from service.scheduler.policy.shares import shares
from tests.unit.service.scheduler.worlds import HOUR, NOW, job, node_info, running, state
from torchyard.spec.policy import Policy


def test_a_clock_that_was_set_back_credits_nobody() -> None:
    later = {"since_us": NOW + 9 * HOUR, "eligible_us": NOW + 9 * HOUR}
    users = {"ann": TenantAccount(usage=7200, usage_us=NOW + 10_000 * HOUR), "bob": TenantAccount(usage=3600)}
    world = state(node_info(), running(1, "a0", **later), running(2, "a1 a2", user="bob", **later), job(3), users=users)
    found = shares(world, NOW, Policy()).worst[world.table.class_id]
    excess = {name: found[row] for name, row in world.table.rows.items()}
    assert 1 < excess["r1"] < 2
    assert excess["r2"] == 1
