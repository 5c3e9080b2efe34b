"""The files below an attempt's ``job/``: what was laid out there, and what its program has made of it.

A manifest is written before the program runs. Afterwards a file is the program's own work if it is not in there, or if
its content differs; an unchanged stamp (inode, size, times) spares the reading.
"""

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pathspec import PathSpec

from torchyard.injob import layout
from torchyard.snapshot import ALWAYS_SKIPPED, ENVIRONMENT_MARKS
from torchyard.wire import Place, Root
from worker.attempts import files, opening

#: Kept by the worker in ``yard/``.
MANIFEST: Final = f"{layout.YARD}/baseline.json"
MAX_DEPTH: Final = 64
FOLDERS: Final = {Root.OUTPUT: layout.OUTPUT, Root.CODE: layout.CODE, Root.JOB: layout.JOB}
#: What lies in ``job/`` and is no work of the program's: ours, or another root.
OWN: Final = frozenset(
    Path(name).name
    for name in (
        layout.CODE,
        layout.OUTPUT,
        layout.METRICS,
        layout.MARKS,
        layout.CHECKPOINTS,
        layout.OUTCOME,
        layout.RENDEZVOUS,
        "recipe.json",
    )
)
_CACHED: Final = (".pyc", ".pyo")

#: What changes whenever a file is written, moved or replaced.
Stamp = tuple[int, int, int, int]
Key = tuple[Root, str]


def stamp_of(status: os.stat_result) -> Stamp:
    """Inode, size, and both times that a write changes."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFile:
    """A regular file of the job's user, or a symbolic link to something that is kept beside it."""

    root: Root
    path: str
    stamp: Stamp
    mode: int
    #: It has one name only.
    alone: bool
    #: Where a symbolic link leads, from its folder; its content is this text.
    link: str | None = None

    @property
    def key(self) -> Key:
        return self.root, self.path

    @property
    def size(self) -> int:
        return self.stamp[1]

    @property
    def mtime_ns(self) -> int:
        return self.stamp[2]

    @property
    def inside(self) -> str:
        """Its path below the attempt's folder."""
        return f"{FOLDERS[self.root]}/{self.path}"

    @property
    def place(self) -> Place:
        return Place(root=self.root, path=self.path)


@dataclass(kw_only=True)
class BaselineManifest:
    """The files that were laid out: their hashes, and the stamps under which these hold."""

    #: `JobSpec.outputs`
    patterns: tuple[str, ...] | None = None
    #: The program works in a folder of its own, which nobody looks into.
    live: bool = False
    #: Files of the snapshot.
    snapshot: dict[Key, str] = field(default_factory=dict)
    #: Files that an earlier attempt has left; None: it began without.
    carried: dict[Key, str] | None = None
    stamps: dict[Key, Stamp] = field(default_factory=dict)

    def hash_of(self, found: JobFile) -> str | None:
        """The file's hash if it is as it was laid out."""
        if self.stamps.get(found.key) != found.stamp:
            return None
        return self.hash_before(found.key)

    def hash_before(self, key: Key) -> str | None:
        """The hash that the file of this name had when it was laid out."""
        if self.carried is not None and key in self.carried:
            return self.carried[key] or None
        return self.snapshot.get(key)

    def is_untouched(self, found: JobFile) -> bool:
        """Return whether it is a file of the snapshot that nobody has written."""
        return found.key in self.snapshot and self.hash_of(found) == self.snapshot[found.key]


def write(folder: Path, manifest: BaselineManifest) -> None:
    """Note what lies in an attempt's folder, with its stamps of now. Raises OSError."""
    known = manifest.snapshot | (manifest.carried or {})
    for root, path in known:
        with suppress(FileNotFoundError):  # the attempt before had removed it
            manifest.stamps[root, path] = stamp_of(folder.joinpath(FOLDERS[root], path).lstat())
    content = {
        "patterns": manifest.patterns,
        "live": manifest.live,
        "snapshot": [[root, path, sha256] for (root, path), sha256 in manifest.snapshot.items()],
        "carried": None
        if manifest.carried is None
        else [[root, path, sha256] for (root, path), sha256 in manifest.carried.items()],
        "stamps": [[root, path, *stamp] for (root, path), stamp in manifest.stamps.items()],
    }
    files.write_whole(folder / MANIFEST, json.dumps(content).encode(), durable=False)


def read(folder: Path) -> BaselineManifest | None:
    """Return what `write` noted; None where nothing was, or a power cut has torn it."""
    try:
        content = files.read_json(folder / MANIFEST)
        return None if content is None else _parsed(content)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _parsed(content: dict[str, Any]) -> BaselineManifest:
    patterns, carried = content["patterns"], content["carried"]
    return BaselineManifest(
        patterns=None if patterns is None else tuple(patterns),
        live=content["live"],
        snapshot=_hashes(content["snapshot"]),
        carried=None if carried is None else _hashes(carried),
        stamps={(Root(root), path): (a, b, c, d) for root, path, a, b, c, d in content["stamps"]},
    )


def _hashes(entries: Iterable[Sequence[Any]]) -> dict[Key, str]:
    return {(Root(root), path): sha256 for root, path, sha256 in entries}


def chooser(patterns: Sequence[str] | None) -> Callable[[Root, str], bool]:
    """Return the rule of `JobSpec.outputs` for a file. Beside the working folder a path begins with ``../``."""
    rules = PathSpec.from_lines("gitignore", patterns or ())
    narrowed = patterns is not None and (not patterns or any(not line.startswith("!") for line in patterns))

    def wanted(root: Root, path: str) -> bool:
        if root is Root.OUTPUT:
            return True
        said = rules.check_file(path if root is Root.CODE else f"../{path}").include
        return said if said is not None else not narrowed and not _is_cache(path)

    return wanted


def _is_cache(path: str) -> bool:
    return path.endswith(_CACHED) or not ALWAYS_SKIPPED.isdisjoint(path.split("/"))


class Walk:
    """One look at the tree. `passed_over` counts what cannot be kept: names that no other system could hold, files of
    other users, mounts, and what lies too deep.
    """

    def __init__(self, folder: Path, owner: int, manifest: BaselineManifest | None) -> None:
        self._folder = folder
        self._owner = owner
        self._wanted = chooser(None if manifest is None else manifest.patterns)
        #: Only a pattern can want something in a cache.
        self._prune = manifest is None or not manifest.patterns
        self._roots = [Root.OUTPUT] if manifest is None or manifest.live else list(Root)
        self._device = folder.stat().st_dev
        self._covered: list[tuple[Root, str]] = []
        self.passed_over = 0

    def covers(self, key: Key) -> bool:
        """Return whether something that the program has mounted lies over the file: nobody knows what is below."""
        return any(key[0] is root and f"{key[1]}/".startswith(path) for root, path in self._covered)

    def files(self) -> Iterator[JobFile]:
        """The files that are to be kept, and the links to these and their folders; none is followed. Raises OSError
        for a disk that fails.
        """
        for root in self._roots:
            yield from self._below(root)

    def _below(self, root: Root) -> Iterator[JobFile]:
        links: list[tuple[str, os.stat_result]] = []
        found: set[str] = set()
        for path, status in self._wanted_below(root):
            if stat.S_ISLNK(status.st_mode):
                links.append((path, status))
            elif self._keepable(status):
                found.add(path)
                yield _found(root, path, status)
        if links:
            yield from self._links(root, links, found)

    def _wanted_below(self, root: Root) -> Iterator[tuple[str, os.stat_result]]:
        pending = [""]
        while pending:
            relative = pending.pop()
            folders = []
            for name, status in self._list(f"{FOLDERS[root]}/{relative}"):
                if root is Root.JOB and not relative and _is_own(name):
                    continue
                if status is None or (stat.S_ISDIR(status.st_mode) and status.st_dev != self._device):
                    self._covered.append((root, f"{relative}{name}/"))
                    self.passed_over += 1
                elif stat.S_ISDIR(status.st_mode):
                    folders.append(name)
                elif self._wanted(root, relative + name):
                    yield relative + name, status
            pending += [f"{relative}{name}/" for name in folders if self._enters(root, relative, name)]

    def _links(self, root: Root, links: Iterable[tuple[str, os.stat_result]], found: set[str]) -> Iterator[JobFile]:
        """Yield those that lead to what was found, or to a folder that holds some of it."""
        kept = found | {str(parent) for path in found for parent in PurePosixPath(path).parents}
        for path, status in links:
            target = self._target(root, path)
            if status.st_uid == self._owner and target in kept and target != ".":
                text = os.path.relpath(f"/{target}", f"/{os.path.split(path)[0]}")
                yield _found_link(root, path, text, status)

    def _target(self, root: Root, path: str) -> str | None:
        """Return where a link leads, as a path of the same root; None if that cannot be."""
        parent, name = os.path.split(path)
        try:
            with opening.folder(self._folder, f"{FOLDERS[root]}/{parent}") as at:
                text = os.readlink(name, dir_fd=at)
        except OSError:
            return None
        if not text.startswith("/"):
            return os.path.normpath(f"{parent}/{text}" if parent else text)
        tops = [f"{folder}/{FOLDERS[root]}/" for folder in (self._folder, self._folder.resolve())]
        return next((os.path.normpath(text.removeprefix(top)) for top in tops if text.startswith(top)), None)

    def _keepable(self, status: os.stat_result) -> bool:
        if status.st_uid != self._owner:
            self.passed_over += 1
            return False
        return stat.S_ISREG(status.st_mode)

    def _enters(self, root: Root, relative: str, name: str) -> bool:
        if root is not Root.OUTPUT and self._prune and name in ALWAYS_SKIPPED:
            return False
        if relative.count("/") >= MAX_DEPTH:
            self.passed_over += 1
            return False
        return True

    def _list(self, inside: str) -> list[tuple[str, os.stat_result | None]]:
        """List a folder, with None for what is mounted there and cannot be looked at; nothing if it is gone, forbidden,
        or an environment of packages.
        """
        found: list[tuple[str, os.stat_result | None]] = []
        try:
            with opening.folder(self._folder, inside) as at, os.scandir(at) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # gone in between
                        found.append((entry.name, _status(entry)))
        except OSError as error:
            if not (opening.strange(error) or isinstance(error, FileNotFoundError)):
                raise
            return []
        if any(name in ENVIRONMENT_MARKS for name, _ in found) and not inside.startswith(layout.OUTPUT):
            return []
        printable = [entry for entry in found if entry[0].isprintable()]
        self.passed_over += len(found) - len(printable)
        return printable


def _is_own(name: str) -> bool:
    """Also the outcome while it is written, by the side of its name."""
    return name in OWN or name.startswith(f"{Path(layout.OUTCOME).name}.")


def _status(entry: "os.DirEntry[str]") -> os.stat_result | None:
    """None for a file system in user space: it shows itself to its user alone, not to root, and ends with its program.
    Raises OSError.
    """
    try:
        return entry.stat(follow_symlinks=False)
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.ENOTCONN}:
            raise
        return None


def _found(root: Root, path: str, status: os.stat_result) -> JobFile:
    mode = 0o755 if status.st_mode & 0o100 else 0o644
    return JobFile(root=root, path=path, stamp=stamp_of(status), mode=mode, alone=status.st_nlink == 1)


def _found_link(root: Root, path: str, text: str, status: os.stat_result) -> JobFile:
    stamp = (status.st_ino, len(text.encode()), status.st_mtime_ns, status.st_ctime_ns)
    return JobFile(root=root, path=path, stamp=stamp, mode=stat.S_IFLNK, alone=False, link=text)
