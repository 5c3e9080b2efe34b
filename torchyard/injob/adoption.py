"""Checkpoints that a framework has written for itself, committed as the job's."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from torchyard.injob import checkpoints, collective, files, layout, place


class AdoptedCheckpoint(NamedTuple):
    """A framework's checkpoint that the attempt resumes from."""

    #: Where it lies now.
    path: str
    #: Where it lay in the working folder, relative to that.
    place: str
    step: int


#: Of the time, at most this part goes into adopting checkpoints.
SHARE = 0.05


class _AdoptionLimit:
    """Limit on how often this process adopts checkpoints: a script may well write one every second."""

    ready_at = 0.0
    #: The newest that was passed over.
    skipped: tuple[int, str, Mapping[str, Any]] | None = None


def adopt(
    step: int, path: str, metrics: Mapping[str, Any] | None = None, *, leaves: bool = True, wanted: bool = False
) -> int:
    """Commit what lies at `path` as the checkpoint of a step, under its place in the working folder; return its
    bytes, 0 for one that was passed over.

    Every rank calls it, once it has written its part. One that is not `wanted` may be passed over for want of time.
    With `leaves` a job that is being stopped ends here. Raises as `checkpoint` does.
    """
    begun = time.monotonic()
    (now,) = collective.broadcast([int(wanted or begun >= _AdoptionLimit.ready_at)])
    _AdoptionLimit.skipped = None if now else (step, path, metrics or {})
    if not now:
        return 0
    where = place_of(path)
    taking = checkpoints.CheckpointWriter(step, metrics or {}, leaves=leaves)
    with taking as folder:
        if place.leads() and os.path.exists(path):  # of several nodes one may have it alone
            _link(path, str(folder / where))
            files.write_json(str(folder / layout.ADOPTED), {"place": where, "step": step})
    ended = time.monotonic()
    _AdoptionLimit.ready_at = ended + (ended - begun) / SHARE
    return taking.size


def adopt_the_last() -> None:
    """The training has ended: commits its last checkpoint, if that was passed over. Every rank calls it."""
    skipped = _AdoptionLimit.skipped
    if skipped is not None:
        step, path, metrics = skipped
        adopt(step, path, metrics, leaves=False, wanted=True)


def restored() -> AdoptedCheckpoint | None:
    """The framework's checkpoint that the attempt resumes from, if it resumes from one."""
    folder = checkpoints.restore()
    marker = None if folder is None else files.read_json(str(folder / layout.ADOPTED))
    if folder is None or not isinstance(marker, dict):
        return None
    return AdoptedCheckpoint(path=str(folder / marker["place"]), place=marker["place"], step=int(marker["step"]))


def place_of(path: str) -> str:
    """A path relative to the working folder, where the script looks for it; of one elsewhere its name alone."""
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(os.getcwd()))
    return os.path.basename(os.path.normpath(path)) if relative.startswith("..") else relative


def _link(source: str, target: str) -> None:
    """The same files under another name: nothing is copied, and what the framework deletes later stays here."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(source):
        shutil.copytree(source, target, copy_function=_same, symlinks=True)
    else:
        _same(source, target)


def _same(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system
        shutil.copy2(source, target)
