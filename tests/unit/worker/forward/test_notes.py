"""Notes of the in-job part, as the node passes them on."""

import json
import os
from pathlib import Path

import pytest

from torchyard import wire
from torchyard.injob import layout
from torchyard.wire import JobNote, NoteKind
from worker.forward.notes import MAX_TEXT, NoteForwarder


class Sink:
    def __init__(self) -> None:
        self.told: list[list[JobNote]] = []

    def notes(self, attempt: str, notes: wire.JobNotes) -> None:
        assert attempt == "att-1"
        self.told.append(notes.notes)


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def forwarder(sink: Sink, tmp_path: Path) -> NoteForwarder:
    (tmp_path / layout.MARKS).mkdir(parents=True)
    return NoteForwarder(sink, "att-1", tmp_path, owner=os.getuid())


def write(folder: Path, kind: str, rank: int, content: object) -> None:
    (folder / layout.MARKS / layout.note_mark(kind, rank)).write_text(json.dumps(content))


def test_ranks_of_one_mind_are_told_of_once(forwarder: NoteForwarder, sink: Sink, tmp_path: Path) -> None:
    assert not forwarder.pump()
    assert sink.told == []
    for rank in range(2):
        write(tmp_path, "inexact", rank, {"step": 3, "text": "ahead"})
    write(tmp_path, "checkpoint-failed", 1, {"step": 7, "text": "no space"})
    for _ in range(2):
        assert not forwarder.pump()
    inexact = JobNote(kind=NoteKind.INEXACT, text="ahead", step=3)
    assert sink.told == [[inexact, JobNote(kind=NoteKind.CHECKPOINT_FAILED, text="no space", step=7)]]
    write(tmp_path, "checkpoint-failed", 0, {"step": 9, "text": "no file"})
    forwarder.pump()
    assert sink.told[-1] == [inexact, JobNote(kind=NoteKind.CHECKPOINT_FAILED, text="no file", step=9)]


@pytest.mark.parametrize(
    "content",
    [[], {}, {"step": "1", "text": "x"}, {"step": -1, "text": "x"}, {"step": 1, "text": 2}, {"step": 1, "text": ""}],
)
def test_what_is_no_note_is_left_out(content: object, forwarder: NoteForwarder, sink: Sink, tmp_path: Path) -> None:
    write(tmp_path, "inexact", 0, content)
    assert not forwarder.pump()
    assert sink.told == []


def test_a_job_cannot_have_other_files_read(forwarder: NoteForwarder, sink: Sink, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(json.dumps({"step": 1, "text": "secret"}))
    (tmp_path / layout.MARKS / layout.note_mark("inexact", 0)).symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / layout.MARKS / layout.note_mark("inexact", 1))
    assert not forwarder.pump()
    assert sink.told == []


def test_long_words_are_cut(forwarder: NoteForwarder, sink: Sink, tmp_path: Path) -> None:
    write(tmp_path, "inexact", 0, {"step": 1, "text": "x" * 5000})
    forwarder.pump()
    assert len(sink.told[0][0].text) == MAX_TEXT


AHEAD, AGAIN = "batches are taken ahead", "its first 3 batches are read again"
PARTS = [
    {"message": AHEAD, "code": "ahead", "params": {}},
    {"message": AGAIN, "code": "read-again", "params": {"count": 3}},
]


def test_sentences_are_passed_on_once_for_all_ranks(forwarder: NoteForwarder, sink: Sink, tmp_path: Path) -> None:
    write(tmp_path, "inexact", 0, {"step": 1, "text": f"{AHEAD}; {AGAIN}", "parts": PARTS})
    write(tmp_path, "inexact", 1, {"step": 1, "text": AHEAD, "parts": PARTS[:1]})
    write(tmp_path, "inexact", 2, {"step": 1, "text": "its own words"})
    forwarder.pump()
    (note,) = sink.told[0]
    assert note.text == f"{AHEAD}; {AGAIN}; {AHEAD}; its own words"
    own = {"message": "its own words", "code": None, "params": {}}
    assert [each.model_dump() for each in note.parts] == [*PARTS, own]


@pytest.mark.parametrize(
    "parts",
    [
        "ahead",
        [7],
        [{"code": "ahead"}],
        [{"message": "other words", "code": "ahead"}],
        [{"message": "x" * 900, "code": "ahead", "params": {"count": "y" * 9000}}],
    ],
)
def test_sentences_that_are_not_those_of_the_text_are_left_out(
    parts: object, forwarder: NoteForwarder, sink: Sink, tmp_path: Path
) -> None:
    write(tmp_path, "inexact", 0, {"step": 1, "text": "x" * 900, "parts": parts})
    forwarder.pump()
    assert sink.told == [[JobNote(kind=NoteKind.INEXACT, text="x" * 900, step=1)]]
