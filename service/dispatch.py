"""Publishes nudges to the nodes through Celery, from a thread of its own: never in a request."""


class Dispatcher:
    """Sends `launch` and `nudge` messages; a message may be lost, the state is the outbox."""

    def launch(self, node: str, attempt_id: str) -> None:
        """Queues a launch message for the node and returns at once."""

    def nudge(self, node: str) -> None:
        """Makes the node ask for its orders at once."""
