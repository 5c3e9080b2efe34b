import pytest

from service.accounting.gpu_time import DAY_US, HOUR_US
from service.scheduler.model.jobs import TenantAccount
from service.simulator.accounts import SimulatedAccounts
from torchyard.api.sharing import Entitlement


def accounts(begin_us: int = 0, **limits: float) -> SimulatedAccounts:
    return SimulatedAccounts({"ada": Entitlement.model_validate(limits)}, begin_us, half_life_us=DAY_US)


def test_usage_is_halved_every_half_life() -> None:
    found = SimulatedAccounts({}, 0, half_life_us=DAY_US)
    assert found.known == {}
    found.charge("bob", 2, 0, HOUR_US)
    found.charge("bob", 1, DAY_US, DAY_US + HOUR_US)
    assert found.known["bob"] == TenantAccount(usage=pytest.approx(3600 + 3600), usage_us=DAY_US + HOUR_US)
    assert not found.weekly


def test_weights_and_quotas_count_before_anything_is_charged() -> None:
    found = accounts(begin_us=-5, weight=2, max_gpus=3, max_gpu_hours=4)
    assert found.known == {"ada": TenantAccount(weight=2, max_gpus=3, week_left_us=4 * HOUR_US, usage_us=-5)}
    assert found.weekly


def test_gpu_time_counts_for_seven_days_against_the_week() -> None:
    """10 GPU-hours around midnight: six of the first day, four of the second."""
    found = accounts(max_gpu_hours=12)
    found.charge("ada", 2, DAY_US - 3 * HOUR_US, DAY_US + 2 * HOUR_US)
    assert found.known["ada"].week_left_us == 2 * HOUR_US
    left = []
    for hours in (7 * 24 - 1, 7 * 24 + 12, 8 * 24, 8 * 24 + 12, 9 * 24):
        found.renew(hours * HOUR_US)
        left.append((found.known["ada"].week_left_us or 0) / HOUR_US)
    assert left == [2, 5, 8, 10, 12]
    assert found.known["ada"].usage == 10 * 3600


def test_of_a_long_run_only_the_last_days_are_charged_to_the_week() -> None:
    found = accounts(begin_us=-100 * DAY_US, max_gpu_hours=1000)
    found.charge("ada", 1, -100 * DAY_US, 0)
    assert found.known["ada"].week_left_us == (1000 - 7 * 24) * HOUR_US
