"""Records of checkpoints."""

from dataclasses import dataclass
from typing import Any

from service.db.records.record import Record
from torchyard.ids import AttemptId, JobId


@dataclass(frozen=True, slots=True)
class CheckpointRecord(Record):
    """A row of `checkpoints`, whole."""

    id: str
    job_id: JobId
    attempt_id: AttemptId
    name: str
    step: int
    state: str
    metrics: dict[str, Any]
    size: int
    created_us: int
    deleted_us: int | None
