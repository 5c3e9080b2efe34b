"""Notes for the job's owner beside the log: short ones in ``job/marks/``, which the node passes on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from torchyard.injob import files, layout, place, reasons

#: The training is not, or would not be, resumed exactly.
INEXACT = "inexact"
#: A checkpoint could not be written; the training goes on.
CHECKPOINT_FAILED = "checkpoint-failed"


def write(kind: str, step: int, why: Sequence[object]) -> None:
    """Leave a note in place of this rank's last one of its kind."""
    text = "; ".join(map(str, why))
    mark(layout.note_mark(kind, place.rank()), {"step": step, "text": text, **reasons.parts(why)})


def mark(name: str, content: Any) -> None:
    """Write a file below ``job/marks/`` for the node; a full disk under it must not end a training."""
    attempt = place.current()
    if attempt is None:
        return
    path = os.path.join(attempt.path(layout.MARKS), name)
    try:
        files.write_json(path, content)
    except OSError as error:
        place.say("cannot write %s: %s" % (path, error))


def checkpoint_failed(step: int, reason: object) -> None:
    """A checkpoint could not be written on this rank, and the training goes on."""
    place.say("no checkpoint of step %d, the training goes on: %s" % (step, reason))
    write(CHECKPOINT_FAILED, step, [reasons.of_error(reason)])
