from contextlib import ExitStack

import pytest

from service.errors import ProblemError
from service.identity.provider_calls import MAX_CALLS, PER_ADDRESS, ProviderCalls


def refused(calls: ProviderCalls, address: str) -> bool:
    try:
        with calls.calling(address):
            return False
    except ProblemError as error:
        return (error.kind, error.retry_after_s) == ("unavailable", 1)


def test_calls_count_while_they_last_and_one_address_does_not_take_all() -> None:
    calls = ProviderCalls()
    with ExitStack() as stack:
        for number in range(PER_ADDRESS):
            stack.enter_context(calls.calling(f"2001:db8::{number}"))  # one network is one address
        assert refused(calls, "2001:db8::ffff")
        assert not refused(calls, "192.0.2.1")
        for number in range(MAX_CALLS - PER_ADDRESS):
            stack.enter_context(calls.calling(f"192.0.2.{number}"))
        assert refused(calls, "198.51.100.1")
    assert not any(refused(calls, f"2001:db8::{number}") for number in range(100)), "what is over does not count"


def test_a_call_that_fails_is_over() -> None:
    calls = ProviderCalls()
    for _ in range(MAX_CALLS + 1):
        with pytest.raises(ZeroDivisionError), calls.calling("192.0.2.1"):
            _ = 1 / 0
    assert not refused(calls, "192.0.2.1")
