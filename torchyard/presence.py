"""Looks at paths that somebody has typed: one that is closed to this account, or longer than a name may be, is none."""

import os
from pathlib import Path


def exists(path: str | Path) -> bool:
    """Return whether something is there."""
    return os.path.exists(path)  # noqa: PTH110  Path raises for a folder that is closed


def is_file(path: str | Path) -> bool:
    """Return whether a file is there."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: str | Path) -> bool:
    """Return whether a folder is there."""
    return os.path.isdir(path)  # noqa: PTH112
