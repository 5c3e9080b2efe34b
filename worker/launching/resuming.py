"""A framework's own checkpoint, where the script looks for it when the attempt resumes, and as an argument."""

import json
import os
import shutil
from pathlib import Path

from torchyard.injob import layout
from torchyard.spec import CHECKPOINT_PLACEHOLDER, JobSpec
from torchyard.wire import Carry
from worker.attempts.records import is_record
from worker.exceptions import RestoreError
from worker.launching.prepare import safe_path


def bring(restore: Path, cwd: Path, spec: JobSpec) -> None:
    """Put the checkpoint back to where it lay in the working folder, unless something is there.

    A `live` folder is the user's, and has it still. Raises RestoreError for a place outside the folder, and OSError.
    """
    place = _place(restore)
    if place is None or spec.live is not None:
        return
    source, target = restore / place, cwd / place
    if os.path.lexists(target) or not source.exists():
        return
    if any(parent.is_symlink() for parent in target.parents if parent.is_relative_to(cwd)):
        raise RestoreError(
            f"the checkpoint to resume from lay at {place}, which `link` leads elsewhere: leave that out"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, copy_function=os.link)
    else:
        os.link(source, target)


def resumed(spec: JobSpec, restore: Path) -> JobSpec:
    """The spec with its arguments for an attempt that resumes from the checkpoint in this folder."""
    if spec.command is None or not spec.resume.args:
        return spec
    place = _place(restore)
    checkpoint = str(restore if place is None else restore / place)
    added = tuple(word.replace(CHECKPOINT_PLACEHOLDER, checkpoint) for word in spec.resume.args)
    return spec.model_copy(update={"command": (*spec.command, *added)})


def continued(spec: JobSpec, carry: Carry | None) -> JobSpec:
    """Return the spec for an attempt without a checkpoint of the job: with its arguments if the script has left a file
    to go on from, and they need no path.

    Of several nodes some may have such files and others not: there all would have to be told the same.
    """
    names = any(CHECKPOINT_PLACEHOLDER in word for word in spec.resume.args)
    if spec.command is None or names or spec.resources.nodes > 1 or carry is None:
        return spec
    if all(is_record(file.path) for file in carry.files):
        return spec
    return spec.model_copy(update={"command": (*spec.command, *spec.resume.args)})


def _place(restore: Path) -> str | None:
    """Return the path of a framework's own checkpoint; None for one that was written for the queue."""
    try:
        place = json.loads((restore / layout.ADOPTED).read_bytes())["place"]
        safe_path(restore, place)
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError) as error:
        raise RestoreError(f"the checkpoint to resume from cannot be read: {layout.ADOPTED}: {error}") from error
    return str(place)
