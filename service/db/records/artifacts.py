"""Records of checkpoints."""

from dataclasses import dataclass
from typing import Any

from service.db.records.record import Record


@dataclass(frozen=True, slots=True)
class CheckpointRecord(Record):
    """A row of `checkpoints`, whole."""

    id: str
    job_id: str
    attempt_id: str
    name: str
    step: int
    state: str
    metrics: dict[str, Any]
    size: int
    created_us: int
    deleted_us: int | None
