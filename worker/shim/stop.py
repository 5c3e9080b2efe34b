"""The stop that is under way."""

#: The same order as `torchyard.states.STOP_PRECEDENCE`, which cannot be imported here.
PRECEDENCE = {"drain": 0, "preempt": 1, "early": 2, "idle": 3, "hung": 4, "timeout": 5, "cancel": 6}


class PendingStop:
    """Reason and deadline of a stop: the stronger reason wins, and the earlier deadline."""

    def __init__(self) -> None:
        self.reason: str | None = None
        #: Monotonic seconds at which what is left is killed.
        self.deadline = float("inf")
        #: Until then a job that has not polled is not signalled.
        self.patient_until = float("inf")
        #: The control file could be written; without it only a signal tells the ranks.
        self.announced = False

    def __bool__(self) -> bool:
        return self.reason is not None

    def ask(self, reason: str, grace_s: float, now: float, patience_s: float = 0.0) -> bool:
        """Return whether there is a new reason to announce; an unknown one counts as a cancel."""
        reason = reason if reason in PRECEDENCE else "cancel"
        self.deadline = min(self.deadline, now + grace_s)
        self.patient_until = min(self.patient_until, now + min(patience_s, grace_s / 2))
        if self.reason is not None and PRECEDENCE[reason] <= PRECEDENCE[self.reason]:
            return False
        self.reason = reason
        return True
