"""Topics that change often: each is told at once, and then no more than once in an interval."""

from collections.abc import Callable, Iterable


class Throttle:
    """Topics that have changed and are not told yet."""

    def __init__(self, interval_s: Callable[[str], float]) -> None:
        self._interval_s = interval_s
        # A dictionary keeps the order and drops doubles.
        self._changed: dict[str, None] = {}
        self._told: dict[str, float] = {}

    def add(self, topics: Iterable[str]) -> None:
        """Note topics that have changed."""
        self._changed.update(dict.fromkeys(topics))

    def take(self, now: float) -> list[str]:
        """Take the topics whose time has come, by a monotonic clock in seconds."""
        self._told = {topic: at for topic, at in self._told.items() if now - at < self._interval_s(topic)}
        ready = [topic for topic in self._changed if topic not in self._told]
        for topic in ready:
            del self._changed[topic]
            self._told[topic] = now
        return ready

    def wait_s(self, now: float, most: float) -> float:
        """Return how long until a topic's time comes, at most `most` seconds."""
        due = [self._told[topic] + self._interval_s(topic) - now for topic in self._changed if topic in self._told]
        return max(0.0, min([*due, most]))
