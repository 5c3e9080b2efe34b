"""What a job's own part tells of its checkpoints is kept, shown, and told once."""

from typing import Any

from tests.support.plane import Plane, Seeded
from torchyard.wire import Clause, JobNote, JobNotes, NoteKind


def tell(plane: Plane, seeded: Seeded, kind: NoteKind, text: str, step: int, *parts: Clause) -> None:
    message = JobNotes(notes=[JobNote(kind=kind, text=text, step=step, parts=list(parts))])
    assert plane.post(seeded, "notes", message).status_code == 204


def events(plane: Plane, seeded: Seeded, kind: str) -> list[str]:
    found: list[dict[str, Any]] = plane.get(f"/jobs/{seeded.job}/events").json()["items"]
    return [event["message"] for event in found if event["kind"] == kind]


def test_a_run_that_is_not_exact(data_plane: Plane) -> None:
    seeded = data_plane.job()
    assert data_plane.get(f"/jobs/{seeded.job}").json()["inexact"] is None
    for _ in range(2):
        tell(data_plane, seeded, NoteKind.INEXACT, "batches are taken ahead", 4)
    assert data_plane.get(f"/jobs/{seeded.job}").json()["inexact"] == "batches are taken ahead"
    assert events(data_plane, seeded, "inexact") == ["could not be resumed exactly: batches are taken ahead"]


def test_a_checkpoint_that_failed_until_one_is_written(data_plane: Plane) -> None:
    seeded = data_plane.job()
    for step in (4, 8):
        tell(data_plane, seeded, NoteKind.CHECKPOINT_FAILED, "no space", step)
    assert data_plane.get(f"/jobs/{seeded.job}").json()["unsaved"] == "no space"
    assert events(data_plane, seeded, "checkpoint-failed") == [
        "no checkpoint of step 4, the training goes on: no space"
    ]
    data_plane.checkpoint(seeded, 12, {"state.pt": b"state"})
    tell(data_plane, seeded, NoteKind.CHECKPOINT_FAILED, "no space", 8)  # again, by a worker that has started anew
    assert data_plane.get(f"/jobs/{seeded.job}").json()["unsaved"] is None


def test_the_sentences_of_notes_are_kept_as_long_as_the_notes(data_plane: Plane) -> None:
    seeded = data_plane.job()
    job = f"/jobs/{seeded.job}"
    assert data_plane.get(job).json()["inexact_parts"] == []
    for kind, code in ((NoteKind.INEXACT, "ahead"), (NoteKind.CHECKPOINT_FAILED, "empty")):
        tell(data_plane, seeded, kind, "in words", 4, Clause(message="in words", code=code))
        field = "inexact_parts" if kind is NoteKind.INEXACT else "unsaved_parts"
        parts = [{"message": "in words", "code": code, "params": {}}]
        assert data_plane.get(job).json()[field] == parts
        items = data_plane.get(f"{job}/events").json()["items"]
        assert [event["data"]["parts"] for event in items if event["kind"] == kind] == [parts]
    tell(data_plane, seeded, NoteKind.INEXACT, "of an older worker", 5)
    data_plane.checkpoint(seeded, 12, {"state.pt": b"state"})
    found = data_plane.get(job).json()
    assert (found["inexact_parts"], found["unsaved_parts"]) == ([], [])
