"""Interval in steps between two reports of a training."""

#: Aim for the time between two reports.
SECONDS = 1.0
#: The interval grows at most so much at once: the first steps of a training are no measure of the others.
MAX_GROWTH = 2
#: And no further, so that a training that has become slow is heard of before it counts as hanging.
MAX_STEPS = 100
#: What a clock decides is another step in every run.
STEPS_IF_DETERMINISTIC = 10


class LogInterval:
    """Every so many steps, or about once a second; the same on all ranks without communication."""

    def __init__(self, every: int | None) -> None:
        self._every = every
        self._interval = self._left = 1

    def due(self, step: int) -> bool:
        """Return True if this step (counted from 1) is to be reported. Asked once for each."""
        if self._every is not None:
            return step % self._every == 0
        self._left -= 1
        return self._left <= 0

    def reported(self, step_seconds: float) -> None:
        """Adapt to the time of a step since the last report, on average over the ranks: all of them give one figure."""
        wanted = int(SECONDS / max(step_seconds, 1e-9))
        self._interval = self._left = max(1, min(wanted, self._interval * MAX_GROWTH, MAX_STEPS))
