"""Removing folders that a job's user can write, whatever lies in them and whoever moves it about.

`shutil.rmtree` follows no link either, but up to Python 3.12 it calls itself for each folder in a folder, so a thousand
of them end it with RecursionError, and it waits for a writer where a pipe is put in a folder's place.
"""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(path: Path) -> None:
    """Remove a folder with all in it, as far as it goes; a link in its place stays. All above it is the worker's."""
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        remove_at(parent, path.name)
    finally:
        os.close(parent)


def remove_at(at: int, name: str) -> bool:
    """Remove a folder in an open one, as far as it goes; return whether it has gone."""
    try:
        top = _open(at, name)
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    try:
        _empty(top)
        os.rmdir(name, dir_fd=at)
    except OSError:
        return False
    finally:
        os.close(top)
    return True


def _open(at: int, name: str) -> int:
    """Open a folder and take it over: nobody else changes it any more, or sees what is moved up into it."""
    folder = os.open(name, _FOLDER, dir_fd=at)
    try:
        own = Path(f"/proc/self/fd/{folder}")
        with suppress(OSError):
            own.chmod(0o700)  # its owner may have closed it to itself
        opened = os.open(own, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(folder)
    with suppress(OSError):
        # Its owner, who may hold it open, could exchange names in it for ever; only root can take it away from them.
        os.fchown(opened, os.geteuid(), -1)
    return opened


def _empty(top: int) -> None:
    """Remove what lies in an open folder. Folders in its folders are moved up first, so two are open at most."""
    pending = _remove_files(top)
    while pending:
        name = pending.pop()
        try:
            inner = _open(top, name)
        except OSError:
            _try(os.unlink, top, name)  # somebody has put something else in its place
            continue
        try:
            pending += [moved for each in _remove_files(inner) if (moved := _move_up(inner, each, top))]
        finally:
            os.close(inner)
        _try(os.rmdir, top, name)


def _remove_files(at: int) -> list[str]:
    """Remove all but folders from an open folder; return the names of these."""
    folders = []
    for name in os.listdir(at):
        with suppress(OSError):
            try:
                os.unlink(name, dir_fd=at)
            except IsADirectoryError:
                folders.append(name)
    return folders


def _move_up(inner: int, name: str, top: int) -> str | None:
    """Give a folder a name of its own in `top`; None if it is empty and gone at once, or cannot be moved."""
    if _try(os.rmdir, inner, name):
        return None
    moved = f".removed-{secrets.token_hex(8)}"
    try:
        os.close(_open(inner, name))  # a folder that is closed to changes cannot be moved
        os.rename(name, moved, src_dir_fd=inner, dst_dir_fd=top)
    except OSError:
        return None
    return moved


def _try(remove_name: Callable[..., None], at: int, name: str) -> bool:
    try:
        remove_name(name, dir_fd=at)
    except OSError:
        return False
    return True
