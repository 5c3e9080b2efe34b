"""Overlap of looks for changed rows: transactions become visible later than the times that they write."""

#: Mostly they do within this time. After thousands of submissions a longer look would find them all again.
BRIEF_US = 500_000


class Overlap:
    """Looks that go back briefly, and now and then as far as a transaction may be late."""

    def __init__(self, far_us: int, every_us: int) -> None:
        #: Transactions become visible at most this much later.
        self._far_us = far_us
        self._every_us = every_us
        self._looked_us = 0

    def back_us(self, now_us: int) -> int:
        """Return how far before the newest seen row a look begins, in µs; after a clock that went back, far."""
        if 0 <= now_us - self._looked_us < self._every_us:
            return BRIEF_US
        self.looked_far(now_us)
        return self._far_us

    def looked_far(self, now_us: int) -> None:
        """A look went back as far as that already."""
        self._looked_us = now_us
