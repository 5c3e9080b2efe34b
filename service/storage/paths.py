"""Names of files inside snapshots, checkpoints and outputs.

They are never used as paths here, but a node will create them: none may leave its folder.
"""

import posixpath
from collections.abc import Iterable

from service.errors import BadPathError
from torchyard.translatable import TranslatableText

MAX_PATH = 1024
MAX_PART = 255


def check(field: str, path: str) -> None:
    """Raise `BadPathError` unless the path is relative, normalised, of UTF-8 and without ``..`` or NUL."""
    if why := _fault(path):
        raise BadPathError(field, path, why)


def _fault(path: str) -> str | None:
    if "\0" in path or not _is_utf8(path):
        return TranslatableText("path-characters", "holds NUL or is not UTF-8: rename the file")
    if not path or path.startswith("/"):
        return TranslatableText("path-relative", "must be relative to its folder")
    if ".." in path.split("/"):
        return TranslatableText("path-parent", "must not hold '..'")
    if path == "." or posixpath.normpath(path) != path:
        return TranslatableText("path-normal", "is not normalised: write {written!r}", written=posixpath.normpath(path))
    if len(path.encode()) > MAX_PATH or any(len(part.encode()) > MAX_PART for part in path.split("/")):
        return TranslatableText(
            "path-long", "is too long: at most {most} bytes, and {part} for each part", most=MAX_PATH, part=MAX_PART
        )
    return None


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_tree(field: str, paths: Iterable[str]) -> None:
    """Raise `BadPathError` for a bad path, one given twice, and one that is both a file and a folder."""
    seen: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        check(field, path)
        if path in seen:
            raise BadPathError(field, path, TranslatableText("path-twice", "is given twice"))
        seen.add(path)
        folder = posixpath.dirname(path)
        while folder and folder not in folders:
            folders.add(folder)
            folder = posixpath.dirname(folder)
    for path in seen & folders:
        raise BadPathError(field, path, TranslatableText("path-both", "is both a file and a folder"))
