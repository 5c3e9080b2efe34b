"""Errors of the service's own making; each is a problem that the API presents as it is."""

from service.problems import DATABASE_BUSY, ProblemError
from torchyard.quantities import format_size


class TooLargeError(ProblemError):
    """More bytes than are taken here."""

    def __init__(self, limit: int) -> None:
        super().__init__("payload-too-large", f"At most {format_size(limit)} are taken here: send less at once.")


class NotAHashError(ProblemError):
    """A blob's name that is not a SHA-256."""

    def __init__(self, text: str) -> None:
        super().__init__("invalid-request", f"{text[:80]!r} is not a SHA-256: give 64 lower-case hexadecimal digits.")


class WrongHashError(ProblemError):
    """What arrived is not what was announced."""

    def __init__(self, announced: str, found: str) -> None:
        super().__init__("invalid-request", f"The content hashes to {found}, not {announced}: send it again.")


class NotPlacedError(ProblemError):
    """A file that should lie in the inbox but does not, or not as announced."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "invalid-request",
            f"The inbox has no regular file {name[:160]!r} of that size: name it <sha256>.<random>, or upload it.",
        )


class BadPathError(ProblemError):
    """A file name that could leave its folder."""

    def __init__(self, field: str, path: str, why: str) -> None:
        super().__init__("invalid-request", f"{field}: {path[:200]!r} {why}")


class OffsetAheadError(ProblemError):
    """A batch that starts beyond what is stored: something before it is missing. `mark` is where to go on from."""

    def __init__(self, offset: int, mark: int) -> None:
        super().__init__(
            "conflict", f"offset: {offset} lies beyond the {mark} bytes that are stored: go on from {mark}"
        )
        self.mark = mark


class DatabaseBusyError(ProblemError):
    """Others have written to the database for too long."""

    def __init__(self) -> None:
        super().__init__("unavailable", DATABASE_BUSY)


class NoRoomError(ProblemError):
    """The disk of the artifact store is nearly full."""

    def __init__(self, free: int) -> None:
        super().__init__(
            "insufficient-storage",
            f"The artifact store has only {format_size(free)} left: delete checkpoints, or give it a larger disk.",
        )


class StaleSpecError(ProblemError):
    """A stored spec that was valid when it was submitted, and is not any more."""

    def __init__(self, mistake: str) -> None:
        super().__init__(
            "not-acceptable-state",
            f"This version refuses the job's spec: {mistake}. Submit it again, with that mended.",
        )
