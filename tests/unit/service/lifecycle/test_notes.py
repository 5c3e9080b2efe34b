"""Kinds of events that the API names."""

import re
from pathlib import Path

from service.lifecycle import JOINED, UNJOINED
from torchyard.api import EventKind
from torchyard.wire import NoteKind


def test_every_kind_of_event_is_known() -> None:
    """Kinds stand in the source as literals, but for notes of the job and what `limits` names."""
    sources = [file.read_text() for file in Path("service").rglob("*.py")]
    told = re.compile(r'Note\(\s*kind="([a-z-]+)"|job_state=[\w.]+,\s*kind="([a-z-]+)"|insert_event\([^"]*"([a-z-]+)"')
    literal = {next(filter(None, groups)) for text in sources for groups in told.findall(text)}
    assert literal | {"submitted", "held", "released", UNJOINED, JOINED, *NoteKind} == set(EventKind)
