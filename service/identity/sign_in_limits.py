"""Bounds on failed sign-ins: guesses of tokens, codes and public links are slowed, from one address and from all
together.
"""

import math
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from service.errors import ProblemError

#: Seconds for which a failure counts.
WINDOW_S = 60.0
PER_ADDRESS = 10
GLOBALLY = 100


@dataclass(frozen=True, slots=True, eq=False)
class SignInAttempt:
    """A sign-in under way, or one that failed."""

    address: str
    at: float


class SignInLimits:
    """Failed sign-ins of the last minute, in memory; safe from many threads.

    A sign-in counts from its beginning and is taken off again when it succeeds, so guesses at the same time are
    counted, too. Refused ones do not count: no more than `GLOBALLY` are ever remembered. `what` is their name in
    refusals.
    """

    def __init__(self, monotonic: Callable[[], float], what: str = "sign-ins") -> None:
        self._monotonic = monotonic
        self._what = what
        self._sign_ins: deque[SignInAttempt] = deque()
        self._lock = threading.Lock()

    def begin(self, address: str) -> SignInAttempt:
        """Count a sign-in; ``too-many-requests`` with Retry-After if too many have failed."""
        now = self._monotonic()
        with self._lock:
            while self._sign_ins and self._sign_ins[0].at + WINDOW_S <= now:
                self._sign_ins.popleft()
            own = [each for each in self._sign_ins if each.address == address]
            if len(own) >= PER_ADDRESS:
                raise self._too_many("from this address", own[0].at + WINDOW_S - now)
            if len(self._sign_ins) >= GLOBALLY:
                raise self._too_many("from all addresses", self._sign_ins[0].at + WINDOW_S - now)
            sign_in = SignInAttempt(address, now)
            self._sign_ins.append(sign_in)
        return sign_in

    def succeeded(self, sign_in: SignInAttempt) -> None:
        """Take a sign-in off that has succeeded."""
        with self._lock:
            if sign_in in self._sign_ins:
                self._sign_ins.remove(sign_in)

    def _too_many(self, source: str, wait_s: float) -> ProblemError:
        seconds = max(1, math.ceil(wait_s))
        return ProblemError(
            "too-many-requests",
            f"Too many {self._what} {source} have failed: wait {seconds} s, then try again.",
            headers={"Retry-After": str(seconds)},
        )
