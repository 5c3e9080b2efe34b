"""Advice at a submission: GPU memory that earlier jobs of its kind have held, where it asks for far more."""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select

from service.db.models import Attempt, Job
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.estimation.estimates import history_key_of
from torchyard.api import NoteCode, SubmissionNote
from torchyard.quantities import format_size
from torchyard.spec import JobSpec
from torchyard.states import JobState

#: Newest jobs of the user in the project that are looked at, and those of its kind that are enough to tell.
LOOKED_AT, TELL = 100, 5
#: What is advised beyond the most that was held, as a part of that.
SPARE: Final = 0.25
_GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class _Ended(Record):
    """A job that succeeded, and the result of its last attempt."""

    spec: StoredSpec
    result: dict[str, Any] | None


def advice(tx: Connection, user_id: str, spec: JobSpec) -> SubmissionNote | None:
    """Return how much less would do, with the option that asks for it; None if it asks for no more than twice that."""
    asked, field = spec.resources.gpu_share, "gpu_share"
    if asked is None:
        asked, field = spec.resources.gpu_memory_min, "gpu_memory_min"
    peaks = _peaks(tx, user_id, spec) if asked else []
    if not peaks or not asked or 2 * max(peaks) > asked:
        return None
    less = max(1, -(-int(max(peaks) * (1 + SPARE)) // _GIB))
    jobs = "the last job like it" if len(peaks) == 1 else f"the last {len(peaks)} jobs like it"
    held, asks = format_size(max(peaks)), format_size(asked)
    option = f"--set resources.{field}={less}GiB"
    return SubmissionNote(
        code=NoteCode.GPU_MEMORY,
        message=f"{jobs} held {held} of a GPU at most, and this one asks for {asks}: {option} would do",
        params={"jobs": len(peaks), "held": held, "asked": asks, "option": option},
    )


def _peaks(tx: Connection, user_id: str, spec: JobSpec) -> list[int]:
    """Return the most that each of the last jobs of its kind has held of a GPU, the newest first."""
    kind = history_key_of(spec.project, user_id, StoredSpec(spec.model_dump(mode="json")))
    query = (
        select(Job.spec, Attempt.result)
        .join(Attempt, (Attempt.job_id == Job.id) & (Attempt.number == Job.attempt))
        .where(Job.user_id == user_id, Job.project == spec.project, Job.state == JobState.SUCCEEDED)
        .order_by(Job.number.desc())
        .limit(LOOKED_AT)
    )
    alike = (
        each for each in _Ended.each(tx.execute(query)) if history_key_of(spec.project, user_id, each.spec) == kind
    )
    found = ((each.result or {}).get("gpu_memory_peak") for each in alike)
    return [peak for peak in found if peak][:TELL]
