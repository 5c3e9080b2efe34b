"""Refusals of changes of state."""


class Conflict(Exception):  # noqa: N818
    """Somebody else changed it first, or it is not in a state that allows this: look again."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class Unknown(Conflict):
    """There is no such job or attempt: check the id."""
