"""Waiting for queues that cannot be waited for."""

import time
from collections.abc import Callable

INTERVAL_S = 0.02
START_S = 60.0
#: Longer than any job takes.
LONGEST_S = 90.0
#: As the queues write them.
FAILED = ("failed", "cancelled", "timeout", "f", "ca", "to")


def until_up(answers: Callable[[], bool]) -> None:
    """Wait until a queue answers; raises RuntimeError when it does not in a minute."""
    over, last = time.monotonic() + START_S, ""
    while time.monotonic() < over:
        try:
            if answers():
                return
        except OSError as error:
            last = str(error)
        time.sleep(0.1)
    raise RuntimeError(f"does not answer a minute after its start {last}".rstrip())


def until_ended(state: Callable[[], str], good: str) -> None:
    """Wait for a state of success; raises RuntimeError for another end, and for none."""
    over = time.monotonic() + LONGEST_S
    while (now := state().lower()) != good:
        if now in FAILED or time.monotonic() > over:
            raise RuntimeError(f"a job is {now}")
        time.sleep(INTERVAL_S)
