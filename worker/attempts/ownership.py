"""Giving folders to a job's user, by descriptors and from the inside out.

As long as the folder at the top is the worker's alone, nobody can put a link in the place of anything below it. So what
lies in a folder is given away before the folder, and the top last of all.
"""

import os
from pathlib import Path

from worker.attempts import opening


def give_contents(folder: Path, uid: int, gid: int) -> None:
    """Give all below a folder of the worker's own to a user, but not the folder itself. Raises OSError."""
    with opening.folder(folder, "") as at:
        _give_below(at, uid, gid)


def give_top(folder: Path, uid: int, gid: int) -> None:
    """Give a folder itself, whose contents are the user's. Raises OSError."""
    with opening.folder(folder, "") as at:
        os.fchown(at, uid, gid)


def give_folders(folder: Path, uid: int, gid: int) -> None:
    """Give the worker's own folders below one, and last this itself; its files are the user's. Raises OSError.

    Folders that are the user's already are looked through, since they may hold some of the worker's.
    """
    with opening.folder(folder, "") as at:
        _give_folders_below(at, uid, gid)
        os.fchown(at, uid, gid)


def _give_below(at: int, uid: int, gid: int) -> None:
    for name, is_folder in _entries(at):
        if is_folder:
            with opening.folder_at(at, name) as inner:
                _give_below(inner, uid, gid)
        os.chown(name, uid, gid, dir_fd=at, follow_symlinks=False)


def _give_folders_below(at: int, uid: int, gid: int) -> None:
    for name, is_folder in _entries(at):
        if is_folder:
            with opening.folder_at(at, name) as inner:
                _give_folders_below(inner, uid, gid)
                if os.fstat(inner).st_uid == os.geteuid():
                    os.fchown(inner, uid, gid)


def _entries(at: int) -> list[tuple[str, bool]]:
    with os.scandir(at) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
