"""Notes of the in-job library to the job's owner: sent whenever they have changed."""

import json
import os
from pathlib import Path
from typing import Final, Protocol

from pydantic import TypeAdapter, ValidationError

from torchyard import wire
from torchyard.ids import AttemptId
from torchyard.injob import layout
from worker.attempts import opening

MAX_NOTE: Final = 16_384
#: Characters of all ranks' words that are kept.
MAX_TEXT: Final = 1000
#: Bytes of the sentences of one rank, as JSON.
MAX_PARTS: Final = 8192
_CLAUSES = TypeAdapter(list[wire.Clause])


class NoteSink(Protocol):
    """Service that takes notes."""

    def notes(self, attempt: AttemptId, notes: wire.JobNotes) -> None: ...


class NoteForwarder:
    """The notes of one attempt; ranks of one mind are told of once."""

    def __init__(self, sink: NoteSink, attempt: AttemptId, folder: Path, *, owner: int) -> None:
        self._sink = sink
        self._attempt = attempt
        self._folder = folder
        self._owner = owner
        self._sent: list[wire.JobNote] = []

    def pump(self) -> bool:
        """Send them, if they are others than before."""
        marks = self._marks()
        found = [note for kind in wire.NoteKind if (note := self._note(kind, marks)) is not None]
        if found != self._sent:
            self._sink.notes(self._attempt, wire.JobNotes(notes=found))
            self._sent = found
        return False

    def _note(self, kind: wire.NoteKind, marks: list[str]) -> wire.JobNote | None:
        """Return the notes of the ranks that are furthest."""
        prefix = layout.note_mark(kind, 0).removesuffix("0.json")
        names = [name for name in marks if name.startswith(prefix) and name.endswith(".json")]
        notes = [note for name in names if (note := self._read(name)) is not None]
        step = max((step for step, _, _ in notes), default=0)
        words = {text: parts for at, text, parts in notes if at == step}
        if not words:
            return None
        text = "; ".join(words)
        parts = list({each.message: each for clauses in words.values() for each in clauses}.values())
        told = parts if len(text) <= MAX_TEXT and any(each.code for each in parts) else []
        return wire.JobNote(kind=kind, step=step, text=text[:MAX_TEXT], parts=told)

    def _marks(self) -> list[str]:
        try:
            with opening.folder(self._folder, layout.MARKS) as at:
                return sorted(opening.names(at))
        except FileNotFoundError:
            return []

    def _read(self, name: str) -> tuple[int, str, list[wire.Clause]] | None:
        try:
            with opening.file_inside(self._folder, f"{layout.MARKS}/{name}", self._owner) as descriptor:
                content = json.loads(os.pread(descriptor, MAX_NOTE, 0))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            if isinstance(error, OSError) and not opening.strange(error):
                raise
            return None
        step, text = (content.get("step"), content.get("text")) if isinstance(content, dict) else (None, None)
        if type(step) is int and 0 <= step < 2**62 and isinstance(text, str) and text:
            return step, text, _clauses(text, content.get("parts"))
        return None


def _clauses(text: str, parts: object) -> list[wire.Clause]:
    """Return the sentences of a text: as the job's own part tells them, if they are those, else the text as one."""
    try:
        found = _CLAUSES.validate_python(parts)
    except ValidationError:
        found = []
    same = "; ".join(each.message for each in found) == text and len(json.dumps(parts)) <= MAX_PARTS
    return found if same else [wire.Clause(message=text)]
