import pytest

from service.errors import ProblemError
from service.identity.sign_in_limits import GLOBALLY, PER_ADDRESS, WINDOW_S, SignInLimits


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def refused(limits: SignInLimits, address: str) -> str:
    with pytest.raises(ProblemError) as caught:
        limits.begin(address)
    assert caught.value.kind == "too-many-requests"
    return str(caught.value.retry_after_s)


def test_one_address_is_slowed_and_others_are_not() -> None:
    clock = Clock()
    limits = SignInLimits(clock)
    for _ in range(PER_ADDRESS):
        limits.begin("eve")
        clock.now += 1
    assert refused(limits, "eve") == str(round(WINDOW_S) - PER_ADDRESS)
    limits.begin("ada")
    clock.now = WINDOW_S
    limits.begin("eve")
    assert refused(limits, "eve") == "1", "only the oldest has left the window"


def test_when_many_fail_only_those_wait_that_have_failed_themselves() -> None:
    clock = Clock()
    limits = SignInLimits(clock)
    for number in range(GLOBALLY):
        limits.begin(f"10.0.0.{number}")
    clock.now = 20
    assert refused(limits, "10.0.0.7") == "40"
    limits.begin("ada")
    assert refused(limits, "ada") == str(round(WINDOW_S)), "one failure each, and no more"
    clock.now = WINDOW_S
    limits.begin("ada")
    limits.begin("10.0.0.7")


def test_addresses_of_one_ipv6_network_are_one() -> None:
    limits = SignInLimits(Clock())
    for number in range(PER_ADDRESS):
        limits.begin(f"2001:db8:0:1::{number:x}")
    refused(limits, "2001:db8:0:1:ffff::1")
    limits.begin("2001:db8:0:2::1")
    for _ in range(PER_ADDRESS):
        limits.begin("::ffff:192.0.2.1")
    refused(limits, "192.0.2.1")
    limits.begin("::ffff:192.0.2.2")


def test_what_succeeds_does_not_count() -> None:
    limits = SignInLimits(Clock())
    for _ in range(3 * PER_ADDRESS):
        limits.succeeded(limits.begin("ada"))
    limits.begin("ada")
