"""Symbolic links that are kept: relative, and to something in the same folder."""

import posixpath


def stays_inside(path: str, text: str) -> bool:
    """Return whether a link at `path` with this text leads to something in the folder that `path` is relative to.

    Only the shortest text counts: a name before ``..`` may itself be a link.
    """
    if posixpath.normpath(text) != text:
        return False
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
    return inside not in {".", ".."} and not inside.startswith(("../", "/"))
