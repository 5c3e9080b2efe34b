"""Priority classes of jobs."""

from enum import StrEnum


class Priority(StrEnum):
    """Priority classes, highest first in the queue."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    URGENT = "urgent"


PRIORITY_RANK: dict[Priority, int] = {p: rank for rank, p in enumerate(Priority)}
