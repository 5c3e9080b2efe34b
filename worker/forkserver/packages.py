"""The installed packages of an interpreter, so far that a change of them shows."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

#: What an installation, an update or a removal of a package touches.
_ENDINGS = (".dist-info", ".egg-info", ".egg-link", ".pth")

#: Path, modification time in nanoseconds and size.
Stamp = tuple[str, int, int]


def stamps(folders: Iterable[str], files: Iterable[str]) -> list[Stamp]:
    """Return the stamps of the files, and of what tells of the packages in the folders; what is not there has none."""
    found = (stamp for path in (*_metadata(folders), *files) if (stamp := _stamp(path)) is not None)
    return sorted(found)


def changed(known: Mapping[str, Any]) -> bool:
    """Return whether a package was installed, updated or removed since what is known of `folders` and `files`."""
    now = [*stamps(known["folders"], []), *stamps([], known["files"])]
    return now != [tuple(stamp) for stamp in known["stamps"]]  # lists, where they have come as JSON


def _metadata(folders: Iterable[str]) -> Iterable[str]:
    for folder in folders:
        try:
            yield from (entry.path for entry in os.scandir(folder) if entry.name.endswith(_ENDINGS))
        except OSError:
            continue


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return path, status.st_mtime_ns, status.st_size
