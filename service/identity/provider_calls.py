"""Bounds on sign-ins that wait for the provider of OpenID Connect at the same time."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from service.errors import ProblemError
from service.identity.sign_in_limits import source_of
from torchyard.translatable import TranslatableText

#: Calls under way in all, well below the threads that answer requests (`service.app.THREADS`).
MAX_CALLS: Final = 12
#: Calls under way from one address, so that a single one does not take all.
PER_ADDRESS: Final = 6


class ProviderCalls:
    """Sign-ins that wait for the provider now; safe from many threads.

    A call counts while it lasts and not afterwards, whether it failed or not: so nobody is refused for what somebody
    behind the same address did before.
    """

    def __init__(self) -> None:
        self._sources: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def calling(self, address: str) -> Iterator[None]:
        """Count a call while it lasts; ``unavailable`` with Retry-After, at once, if too many are under way."""
        source = source_of(address)
        with self._lock:
            if self._sources.total() >= MAX_CALLS or self._sources[source] >= PER_ADDRESS:
                raise ProblemError(
                    "unavailable",
                    TranslatableText(
                        "provider-busy",
                        "Many sign-ins wait for the provider of OpenID Connect: reload this page in a second.",
                    ),
                    retry_after_s=1,
                )
            self._sources[source] += 1
        try:
            yield
        finally:
            with self._lock:
                self._sources[source] -= 1
                self._sources += Counter()  # without those that are done
