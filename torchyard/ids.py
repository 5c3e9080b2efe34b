"""Opaque, time-ordered identifiers."""

import secrets
import threading
import time
from typing import NewType

#: Id of a job, as `new_id` makes it of the kind ``job``.
JobId = NewType("JobId", str)
#: Id of an attempt, as `new_id` makes it of the kind ``att``.
AttemptId = NewType("AttemptId", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_lock = threading.Lock()
_last = 0


def new_id(kind: str) -> str:
    """A fresh id such as ``job-01kabc…``: 48 bits of milliseconds, 80 of chance, in base 32.

    Ids made later sort later, so indexes stay dense: to the millisecond, and within one in the order in which a process
    makes them (a monotonic ULID). A process keeps that order when the clock is set back, too.
    """
    number = _next_number(time.time_ns() // 1_000_000)
    digits = [_ALPHABET[number >> shift & 31] for shift in range(125, -5, -5)]
    return f"{kind}-{''.join(digits)}"


def _next_number(millisecond: int) -> int:
    global _last  # noqa: PLW0603 (one per process)
    with _lock:
        _last = max(
            millisecond << 80 | secrets.randbits(79),  # the highest bit is room for those that follow
            _last + 1 + secrets.randbits(64),
        )
        return _last


def parse_job_id(text: str) -> JobId | None:
    """Return the text as a job's id; None if it is the id of something else."""
    return JobId(text) if text.startswith("job-") else None


def now_us() -> int:
    """The wall clock in integer microseconds UTC: how every stored time is written."""
    return time.time_ns() // 1000
