"""The installed packages of an interpreter, so far that a change of them shows."""

import os
from collections.abc import Iterable

#: What an installation, an update or a removal of a package touches.
_ENDINGS = (".dist-info", ".egg-info", ".egg-link", ".pth")

#: Path, modification time in nanoseconds and size.
Stamp = tuple[str, int, int]


def stamps(folders: Iterable[str], files: Iterable[str]) -> list[Stamp]:
    """Return the stamps of the files, and of what tells of the packages in the folders; what is not there has none."""
    found = (stamp for path in (*_metadata(folders), *files) if (stamp := _stamp(path)) is not None)
    return sorted(found)


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
