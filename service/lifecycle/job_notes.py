"""Notes of the in-job part to the owner: that it is not resumed exactly, that a checkpoint could not be written."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, func, select

from service.db.models import Checkpoint
from service.db.records.attempts import AttemptRecord
from service.db.records.jobs import JobRecord
from service.lifecycle.notes import Note
from service.lifecycle.rows import lock_attempt
from service.lifecycle.transitions import change_job
from torchyard.ids import AttemptId
from torchyard.wire import JobNote, NoteKind


def take_notes(tx: Connection, attempt_id: AttemptId, notes: Iterable[JobNote], now: int) -> None:
    """Store what is new in them, each with its event. They may come again."""
    for note in notes:
        job, attempt = lock_attempt(tx, attempt_id)
        if note.kind is NoteKind.INEXACT:
            _inexact(tx, job, attempt, note, now)
        else:
            _unsaved(tx, job, note, now)


def _inexact(tx: Connection, job: JobRecord, attempt: AttemptRecord, note: JobNote, now: int) -> None:
    if job.inexact == note.text:
        return
    how = "could not be resumed exactly" if attempt.resumed_from_step is None else "is not resumed exactly"
    data = {**_data(note), "resumed": attempt.resumed_from_step is not None}
    told = Note(kind=note.kind, message=f"{how}: {note.text}", data=data)
    change_job(tx, job.id, told, now, inexact=note.text, inexact_parts=_parts(note) or None)


def _unsaved(tx: Connection, job: JobRecord, note: JobNote, now: int) -> None:
    newest = tx.scalar(select(func.max(Checkpoint.step)).where(Checkpoint.job_id == job.id))
    if job.unsaved == note.text or (newest is not None and 0 < note.step < newest):
        return
    which = f"no checkpoint of step {note.step}" if note.step else "no checkpoint"
    told = Note(kind=note.kind, message=f"{which}, the training goes on: {note.text}", data=_data(note))
    change_job(tx, job.id, told, now, unsaved=note.text, unsaved_parts=_parts(note) or None)


def _data(note: JobNote) -> dict[str, Any]:
    return {"step": note.step, "text": note.text, "parts": _parts(note)}


def _parts(note: JobNote) -> list[dict[str, Any]]:
    return [each.model_dump(mode="json") for each in note.parts]
