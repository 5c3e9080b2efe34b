"""Marks of the in-job library about trackers: JSON files in ``job/marks/``, which may hold anything."""

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from torchyard.injob import layout
from worker.attempts import opening
from worker.attempts.folder import AttemptFolder

_MAX: int = 2**16


def read(folder: AttemptFolder, owner: int, name_of: Callable[[int], str]) -> Iterator[dict[str, Any]]:
    """The ranks' marks of one kind, as far as they can be read."""
    pattern = re.compile(re.escape(name_of(0)).replace("0", r"\d{1,6}"))
    try:
        with opening.folder(folder.path, layout.MARKS) as at:
            for name in filter(pattern.fullmatch, opening.names(at)):
                with opening.file(at, name, owner) as descriptor:
                    content = _object(os.read(descriptor, _MAX))
                if content is not None:
                    yield content
    except OSError:
        return


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        return dict(json.loads(data))
    except (ValueError, TypeError, RecursionError):
        return None


def renamed(folder: AttemptFolder, owner: int) -> dict[str, dict[str, str]]:
    """Names that trackers give to what the job reports under others, by tracker."""
    found: dict[str, dict[str, str]] = {}
    for content in read(folder, owner, layout.renamed_mark):
        for tracker, names in content.items():
            if isinstance(names, dict):
                kept = {old: new for old, new in names.items() if isinstance(new, str)}
                found.setdefault(tracker, {}).update(kept)
    return found
