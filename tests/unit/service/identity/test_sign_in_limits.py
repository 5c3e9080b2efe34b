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
    return caught.value.headers["Retry-After"]


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


def test_all_addresses_together_are_slowed() -> None:
    clock = Clock()
    limits = SignInLimits(clock)
    for number in range(GLOBALLY):
        limits.begin(f"10.0.0.{number}")
    assert refused(limits, "ada") == str(round(WINDOW_S))
    clock.now = WINDOW_S
    limits.begin("ada")


def test_what_succeeds_does_not_count() -> None:
    limits = SignInLimits(Clock())
    for _ in range(3 * PER_ADDRESS):
        limits.succeeded(limits.begin("ada"))
    limits.begin("ada")
