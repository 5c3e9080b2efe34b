"""In-process wake-ups: writers notify a topic, followers wake."""


class Hub:
    """Topics that can be notified from any thread."""

    def notify(self, topic: str) -> None:
        """Wakes everybody who listens to the topic; never blocks."""
