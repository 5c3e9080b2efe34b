"""Bounds on failed sign-ins: guesses of secrets and of public links are slowed, from one address and from all together.

Secrets that nobody can guess (`callers.new_secret`, `sign_in_codes`, `link_tokens`) are looked up before they are
counted, and only wrong ones are: what others try at the same time is no reason to refuse a right one.
"""

import ipaddress
import math
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass

from service.errors import ProblemError
from torchyard.translatable import TranslatableText

#: Seconds for which a failure counts.
WINDOW_S = 60.0
PER_ADDRESS = 10
#: Failures in all after which only addresses wait that have one of their own.
GLOBALLY = 100
#: Addresses of IPv6 that one customer of a provider has all of.
IPV6_PREFIX = 64
SIGN_INS = TranslatableText("sign-ins", "sign-ins")
PUBLIC_LINKS = TranslatableText("public-links", "public links")
_THIS_ADDRESS = TranslatableText("from-this-address", "from this address")
_MANY_ADDRESSES = TranslatableText("from-many-addresses", "from many addresses, this one too,")


@dataclass(frozen=True, slots=True, eq=False)
class SignInAttempt:
    """A sign-in under way, or one that failed."""

    source: str
    at: float


class SignInLimits:
    """Failed sign-ins of the last minute, in memory; safe from many threads.

    A sign-in counts from its beginning and is taken off again when it succeeds, so guesses at the same time are
    counted, too. Refused ones do not count: `PER_ADDRESS` of an address are remembered at most. `what` is their name
    in refusals.
    """

    def __init__(self, monotonic: Callable[[], float], what: TranslatableText = SIGN_INS) -> None:
        self._monotonic = monotonic
        self._what = what
        self._sign_ins: deque[SignInAttempt] = deque()
        self._by_source: defaultdict[str, list[SignInAttempt]] = defaultdict(list)
        self._lock = threading.Lock()

    def begin(self, address: str) -> SignInAttempt:
        """Count a sign-in; ``too-many-requests`` with Retry-After if too many have failed."""
        now, source = self._monotonic(), source_of(address)
        with self._lock:
            while self._sign_ins and self._sign_ins[0].at + WINDOW_S <= now:
                self._forget(self._sign_ins.popleft())
            own = self._by_source.get(source, [])
            if len(own) >= PER_ADDRESS:
                raise self._too_many(_THIS_ADDRESS, own[0].at + WINDOW_S - now)
            if own and len(self._sign_ins) >= GLOBALLY:
                raise self._too_many(_MANY_ADDRESSES, own[-1].at + WINDOW_S - now)
            sign_in = SignInAttempt(source, now)
            self._sign_ins.append(sign_in)
            self._by_source[source].append(sign_in)
        return sign_in

    def succeeded(self, sign_in: SignInAttempt) -> None:
        """Take a sign-in off that has succeeded."""
        with self._lock:
            if sign_in in self._sign_ins:
                self._sign_ins.remove(sign_in)
                self._forget(sign_in)

    def _forget(self, sign_in: SignInAttempt) -> None:
        own = self._by_source[sign_in.source]
        own.remove(sign_in)
        if not own:
            del self._by_source[sign_in.source]

    def _too_many(self, source: TranslatableText, wait_s: float) -> ProblemError:
        seconds = max(1, math.ceil(wait_s))
        return ProblemError(
            "too-many-requests",
            TranslatableText(
                "too-many-failed",
                "Too many {what} {source} have failed: wait {seconds} s, then try again.",
                what=self._what,
                source=source,
                seconds=seconds,
            ),
            retry_after_s=seconds,
        )


def source_of(address: str) -> str:
    """Return what counts as one address: of IPv6 its network, since whoever has one address has them all."""
    try:
        found = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    return str(found.ipv4_mapped or ipaddress.IPv6Network((int(found), IPV6_PREFIX), strict=False))
