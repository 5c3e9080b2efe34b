"""Lays out the files that an earlier attempt has left, over the code that the job was submitted with."""

import logging
import os
import shutil
import stat
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Final

from torchyard.files import links
from torchyard.injob.cadence import FLOOR
from torchyard.quantities import format_size
from torchyard.wire import CarriedFile, Carry, Place, Root
from worker.attempts import content, tree
from worker.attempts.folder import AttemptFolder
from worker.attempts.kept import KeptFiles
from worker.attempts.retained import RetainedFiles
from worker.attempts.tree import Key

_READERS: Final = 8

logger = logging.getLogger(__name__)


def lay_out(
    folder: AttemptFolder,
    carry: Carry,
    materialize: Callable[[Path, list[CarriedFile]], None],
    floor: int | None = None,
) -> tuple[dict[Key, str], list[str]]:
    """Put the files in their places and remove what was removed; return the hashes of those that are there (empty
    for one that was kept on the node), and what the job's owner should know.

    What the attempt before has left on this node is taken from there; `materialize` brings other files of the store
    below a folder. Copies leave `floor` bytes of the disk free. Raises OSError, MissingBlobError, ValueError.
    """
    notes: list[str] = []
    for place in carry.deleted:
        _remove(folder, place)
    free = [file for file in carry.files if _is_free(folder, file.root, file.path, notes)]
    stored = [file for file in free if not file.on_node]
    fetched = _not_retained(folder, stored)
    for root in Root:
        materialize(folder.at(tree.FOLDERS[root]), [file for file in fetched if file.root is root])
    room = FLOOR if floor is None else floor
    there = [file for file in free if not file.on_node or _from_node(folder, file, room, notes)]
    there = [file for file in there if not file.is_link or _link(folder, file, notes)]
    if there:
        size, here = format_size(sum(file.size for file in there)), len(stored) - len(fetched)
        found = f", {here} of them found on this node" if here else ""
        notes.append(
            f"begins with {len(there)} files ({size}) of the attempt before{found}; `carry: false` begins anew"
        )
    return {(file.root, file.path): file.sha256 for file in there}, notes


def _not_retained(folder: AttemptFolder, files: list[CarriedFile]) -> list[CarriedFile]:
    """The files that are not on this node, or not as they were recorded; the others are put in their places."""
    retained = RetainedFiles(folder.attempts.parent)
    with ThreadPoolExecutor(_READERS) as pool:
        taken = list(pool.map(lambda file: retained.take(file, _target(folder, file.root, file.path)), files))
    return [file for file, here in zip(files, taken, strict=True) if not here]


def release(folder: AttemptFolder, carry: Carry | None) -> None:
    """Give up the other names of the files that were moved here: from now on they are this attempt's."""
    if carry is None:
        return
    RetainedFiles(folder.attempts.parent).discard(carry.attempt)
    kept = KeptFiles(folder.attempts.parent)
    for file in carry.files:
        place = Place(root=file.root, path=file.path)
        if file.on_node and file.move and kept.has(file.attempt, place) and _is_here(folder, file):
            kept.remove(file.attempt, place)
    manifest = tree.read(folder.path)
    try:
        if manifest is not None:
            tree.write(folder.path, manifest)  # the loss of a name has changed the stamps
    except OSError as error:
        logger.warning("%s: carried files count as changed: %s", folder.attempt_id, error)


def _is_here(folder: AttemptFolder, file: CarriedFile) -> bool:
    try:
        return stat.S_ISREG(_target(folder, file.root, file.path).lstat().st_mode)
    except FileNotFoundError:
        return False


def _target(folder: AttemptFolder, root: Root, path: str) -> Path:
    return folder.at(tree.FOLDERS[root]).joinpath(*PurePosixPath(path).parts)


def _is_free(folder: AttemptFolder, root: Root, path: str, notes: list[str]) -> bool:
    """Return whether the file may be put there: below no link, on no folder, and on nothing of ours."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise ValueError(f"{path!r} is no path inside the folder")
    base, target = folder.at(tree.FOLDERS[root]), _target(folder, root, path)
    parents = _parents(base, target)
    blocked = any(parent.is_symlink() or (parent.exists() and not parent.is_dir()) for parent in parents)
    ours = root is Root.JOB and parts[0] in tree.OWN
    if blocked or ours or target.is_symlink() or target.is_dir():
        notes.append(f"{path!r} of the attempt before is left out: something else is in its place")
        return False
    return True


def _link(folder: AttemptFolder, file: CarriedFile, notes: list[str]) -> bool:
    """Put a link in the place of its text, unless it leads out of its root."""
    target = _target(folder, file.root, file.path)
    text = target.read_text()
    target.unlink()
    if not links.stays_inside(file.path, text):
        notes.append(f"{file.path!r} of the attempt before is left out: a link to {text!r}")
        return False
    target.symlink_to(text)
    return True


def _parents(base: Path, target: Path) -> Iterable[Path]:
    parent = target.parent
    while parent != base:
        yield parent
        parent = parent.parent


def _remove(folder: AttemptFolder, place: Place) -> None:
    if _is_free(folder, place.root, place.path, []):
        _target(folder, place.root, place.path).unlink(missing_ok=True)


def _from_node(folder: AttemptFolder, file: CarriedFile, floor: int, notes: list[str]) -> bool:
    """Take a file that was too large for the store: by a second name if it may be moved, else as a copy."""
    kept = KeptFiles(folder.attempts.parent)
    target = _target(folder, file.root, file.path)
    try:
        with kept.open(file.attempt, Place(root=file.root, path=file.path)) as descriptor:
            status = os.fstat(descriptor)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            if file.move:
                content.second_name(descriptor, target)
            else:
                _copy(descriptor, target, status.st_size, floor)
    except OSError as error:
        notes.append(f"{file.path!r} ({format_size(file.size)}) of the attempt before is not here: {error}")
        return False
    return True


def _copy(descriptor: int, target: Path, size: int, floor: int) -> None:
    if shutil.disk_usage(target.parent).free - size < floor:
        raise OSError("the node's disk has no room for a copy of it")
    content.copy(descriptor, target, size)
    target.chmod(0o600)
