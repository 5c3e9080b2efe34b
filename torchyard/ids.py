"""Opaque, time-ordered identifiers."""

import secrets
import time
from typing import NewType

#: Id of a job, as `new_id` makes it of the kind ``job``.
JobId = NewType("JobId", str)
#: Id of an attempt, as `new_id` makes it of the kind ``att``.
AttemptId = NewType("AttemptId", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(kind: str) -> str:
    """A fresh id such as ``job-01kabc…``: 48 bits of milliseconds, 80 of chance, in base 32.

    Ids made later sort later (to the millisecond), so indexes stay dense.
    """
    number = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    digits = [_ALPHABET[number >> shift & 31] for shift in range(125, -5, -5)]
    return f"{kind}-{''.join(digits)}"


def parse_job_id(text: str) -> JobId | None:
    """Return the text as a job's id; None if it is the id of something else."""
    return JobId(text) if text.startswith("job-") else None


def now_us() -> int:
    """The wall clock in integer microseconds UTC: how every stored time is written."""
    return time.time_ns() // 1000
