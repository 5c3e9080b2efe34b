"""Puts the files of a job where they would be had it run by hand, and overwrites nothing of the user's own."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from torchyard import api
from torchyard.client import download
from torchyard.client.client import Client


@dataclass(frozen=True, kw_only=True)
class PullLayout:
    """Folders that files go to, by the root that they are relative to."""

    output: Path
    code: Path
    job: Path
    #: For a node's file, where another node has one of the same name.
    nodes: Path

    def place(self, file: api.Output, *, taken: bool) -> Path:
        """Path of a file; raises DamagedDownloadError for a name that would lead elsewhere."""
        folder = {"output": self.output, "code": self.code, "job": self.job}[file.root]
        if taken:
            folder = self.nodes / f"node-{file.node_rank}" / file.root
        return download.inside(folder, file.name)


def as_in_job(folder: Path) -> PullLayout:
    """Side by side in one folder, as below the job's own."""
    return PullLayout(output=folder / "output", code=folder / "code", job=folder, nodes=folder)


def as_by_hand(folder: Path) -> PullLayout:
    """Layout in the code folder itself; what the program calls ``../data/x`` is beside it."""
    return PullLayout(output=folder / "output", code=folder, job=folder.parent, nodes=folder)


@dataclass
class PullResult:
    """Result of a pull, by file."""

    written: list[Path] = field(default_factory=list)
    #: Not written, with the reason.
    refused: list[tuple[Path, str]] = field(default_factory=list)


def planned(files: Iterable[api.Output], layout: PullLayout) -> list[tuple[api.Output, Path]]:
    """The files that can be downloaded, with their places; equal ones of several nodes count once."""
    plan: dict[Path, api.Output] = {}
    for file in sorted(files, key=lambda file: file.node_rank):
        if file.state != "stored":
            continue
        place = layout.place(file, taken=False)
        if place in plan and plan[place].sha256 != file.sha256:
            place = layout.place(file, taken=True)
        plan.setdefault(place, file)
    return [(file, place) for place, file in plan.items()]


def pull(
    client: Client,
    job: str,
    plan: Sequence[tuple[api.Output, Path]],
    *,
    base: Path,
    careful: bool,
    progress: Callable[[int], None],
) -> PullResult:
    """Download files; `careful` leaves alone what the user may have changed, and what leads out of `base`."""
    pulled = PullResult()
    for file, place in plan:
        reason = _objection(file, place, base) if careful else None
        if reason is not None:
            pulled.refused.append((place, reason))
            continue
        try:
            client.download_to(job, file, place, progress=progress)
        except OSError as error:
            pulled.refused.append((place, error.strerror or str(error)))
        else:
            pulled.written.append(place)
    return pulled


def _objection(file: api.Output, place: Path, base: Path) -> str | None:
    """Return the reason why a file is not to be written."""
    if file.root == "job" and any(part.startswith(".") for part in PurePosixPath(file.name).parts):
        return "a hidden file outside the folder"
    limit = base.parent if file.root == "job" else base
    if not _parent(place).is_relative_to(limit.resolve()):
        return "a link leads out of the folder"
    if not place.exists() and not place.is_symlink():
        return None
    if not _leads_there(place, file) if place.is_symlink() else not place.is_file():
        return "something else is in its place"
    if place.is_symlink() or download.digest(place) in {file.sha256, file.baseline}:
        return None
    return "differs from what the job was submitted with: move it away, or pull to another folder"


def _leads_there(place: Path, file: api.Output) -> bool:
    """Return whether a link is the one that the job has left."""
    text = os.fsencode(place.readlink())
    return stat.S_ISLNK(file.mode) and hashlib.sha256(text).hexdigest() == file.sha256


def _parent(place: Path) -> Path:
    """The folder of the file, as far as it is there, without links."""
    return place.parent.resolve()
