"""Waiting for a condition with a deadline, never for luck."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")
#: Seconds between two looks: soon at first, and then at a pace that costs whoever is asked little.
_FIRST_S, _LAST_S = 0.02, 0.35


def until(condition: Callable[[], Value], *, seconds: float = 60.0, what: str = "the condition") -> Value:
    """The first true value of `condition()`; AssertionError after the deadline."""
    deadline, pause = time.monotonic() + seconds, _FIRST_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not come true within {seconds:g} s"
        time.sleep(pause)
        pause = min(_LAST_S, 1.25 * pause)
    return value


def tick(folder: Path) -> None:
    """Wait until a file that is written now gets a later time than those that were written before.

    Before Linux 6.13 the times of files advance in steps of up to 10 ms: two writes within one look like one.
    """
    probe = folder / ".tick"
    probe.touch()
    before = probe.stat().st_mtime_ns

    def moved() -> bool:
        probe.touch()
        return probe.stat().st_mtime_ns > before

    until(moved, what="the clock of files")
    probe.unlink()
