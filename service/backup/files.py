"""Files of a backup: blobs are linked where that is possible and never change; logs grow and are copied."""

import os
import shutil
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path


def mirror_blobs(source: Path, target: Path) -> int:
    """Bring the blobs that `target` lacks; return how many. One that vanishes meanwhile is passed over."""
    brought = 0
    for folder in _folders(source):
        mine = target / folder.name
        have = _names(mine) if mine.is_dir() else set()
        for name in _names(folder) - have:
            brought += bring_blob(source, target, name)
    return brought


def bring_blob(source: Path, target: Path, sha256: str) -> bool:
    """Bring one blob; return false if it is not in `source`."""
    path = target / sha256[:2] / sha256
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        place(source / sha256[:2] / sha256, path)
    except FileNotFoundError:
        return False
    return True


def place(source: Path, target: Path) -> None:
    """Link a file that never changes, or copy it where no link can be; nothing half-copied gets its name."""
    try:
        target.hardlink_to(source)
    except FileExistsError:
        return
    except FileNotFoundError:
        raise
    except OSError:  # another file system, one without links, or another account's file
        copy(source, target)


def copy(source: Path, target: Path) -> None:
    """Copy a file with mode and times, whole or not at all."""
    partial = target.with_name(f".{target.name}.partial")
    try:
        shutil.copy2(source, partial)
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def mirror_logs(source: Path, target: Path) -> None:
    """Copy the logs that have changed since the last time; remove those that are gone."""
    for folder in _folders(source):
        mine = target / folder.name
        mine.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):  # discarded meanwhile
            for path in sorted(folder.iterdir()):
                if _changed(path, mine / path.name):
                    copy(path, mine / path.name)
    kept = {folder.name for folder in _folders(source)}
    for folder in _folders(target):
        if folder.name not in kept:
            shutil.rmtree(folder)


def _changed(source: Path, target: Path) -> bool:
    if not target.exists():
        return True
    old, new = target.stat(), source.stat()
    return (old.st_size, old.st_mtime_ns) != (new.st_size, new.st_mtime_ns)


def prune_blobs(target: Path, wanted: Set[str]) -> None:
    """Remove the blobs that the database does not name."""
    for folder in _folders(target):
        for name in _names(folder) - wanted:
            (folder / name).unlink(missing_ok=True)


def _folders(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from sorted(path for path in folder.iterdir() if path.is_dir())


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
