"""Resources of the REST API as values, for tests that need one without a service."""

from datetime import UTC, datetime
from typing import Any

from torchyard.api import Job, Storage
from torchyard.spec import Priority
from torchyard.states import JobState


def job(**changes: Any) -> Job:
    """A queued job, changed as asked."""
    fields: dict[str, Any] = {
        "id": "job-1",
        "number": 1,
        "name": "one",
        "user": "ada",
        "project": "default",
        "state": JobState.QUEUED,
        "held": False,
        "priority": Priority.NORMAL,
        "tags": [],
        "version": 1,
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
        "started_at": None,
        "ended_at": None,
        "attempt": 0,
        "gpus": 1,
        "devices": [],
        "progress": None,
        "latest": {},
        "stop": None,
        "error": None,
        "storage": Storage(checkpoints=0, outputs=0, logs=0),
        "rerun_of": None,
        "resumed_from": None,
        "spec": {"command": ["true"]},
    }
    return Job.model_validate(fields | changes)
