"""Decisions about each of the trackers' files of an attempt, made once, which outlive the worker."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from torchyard.injob import layout
from worker.attempts import files

_NAME: Final = "state.json"


@dataclass(kw_only=True)
class TrackerState:
    """Kept in the attempt folder; written before the first point that depends on it."""

    #: How much of each file was there before the job began.
    baseline: dict[str, int] = field(default_factory=dict)
    #: Number, stream and name's prefix of each file that has been read.
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: The first run of each stream, whose names have no prefix.
    first_runs: dict[str, str] = field(default_factory=dict)
    #: Ids of the runs that the job made, by tracker.
    runs: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> "TrackerState | None":
        """The state of an attempt; None where its trackers are not read."""
        try:
            content = files.read_json(folder / layout.TRACKERS / _NAME)
        except (OSError, ValueError):
            return None
        return None if content is None else cls(**content)

    def save(self, folder: Path, *, durable: bool = True) -> None:
        """Save it; `durable` survives a power cut too. Raises OSError."""
        place = folder / layout.TRACKERS
        place.mkdir(mode=0o700, exist_ok=True)
        files.write_whole(place / _NAME, json.dumps(asdict(self)).encode(), durable=durable)
