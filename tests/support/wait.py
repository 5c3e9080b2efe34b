"""Waiting for a condition with a deadline, never for luck."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def until(condition: Callable[[], Value], *, seconds: float = 60.0, what: str = "the condition") -> Value:
    """The first true value of `condition()`; AssertionError after the deadline."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not come true within {seconds:g} s"
        time.sleep(0.02)
    return value
