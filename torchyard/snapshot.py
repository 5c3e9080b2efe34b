"""Code snapshots: what of a folder is uploaded, and under which hashes.

Ignored are what ``.gitignore`` and ``.yardignore`` files say at every level, also above the folder up to the top of
its Git repository (gitignore's own rules; a ``.yardignore`` may bring back with ``!`` what a ``.gitignore`` beside it
left out), and always ``.git``, ``__pycache__`` and virtual environments. A symbolic link to a file inside the folder
is uploaded as that file; links to folders, broken links and links that lead out of the folder are left out and named
in `CodeSnapshot.notices`. Sockets, devices and pipes are left out, and what the spec's `link` joins in on the node.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

from torchyard import presence
from torchyard.exceptions import SnapshotError
from torchyard.quantities import format_size
from torchyard.wire import FileRef

IGNORE_FILES = (".gitignore", ".yardignore")
ALWAYS_SKIPPED = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".ipynb_checkpoints",
        ".tox",
        ".nox",
        "node_modules",
    }
)
#: A folder that holds one of these is an environment, whatever its name.
ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")
MAX_BYTES = 512 * 2**20
MAX_FILES = 20_000
PIECE = 2**20
SHOWN_OFFENDERS = 8


@dataclass(frozen=True, kw_only=True)
class CodeFile:
    """One file of a snapshot: `path` inside it, `source` on this machine."""

    path: str
    source: Path
    size: int
    mode: int
    sha256: str

    def ref(self) -> FileRef:
        """The file as the manifest lists it."""
        return FileRef(path=self.path, size=self.size, sha256=self.sha256, mode=self.mode)


@dataclass(frozen=True, kw_only=True)
class CodeSnapshot:
    """The files of a code folder, sorted by path."""

    root: Path
    files: tuple[CodeFile, ...]
    notices: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def paths(self) -> frozenset[str]:
        """The files' paths inside the snapshot."""
        return frozenset(file.path for file in self.files)


@dataclass(frozen=True)
class _Rules:
    """Ignore files met on the way down: the folder of each (ending in ``/``) and its patterns."""

    levels: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def below(self, folder: Path) -> "_Rules":
        found = tuple((f"{folder}/", spec) for name in IGNORE_FILES if (spec := _read_rules(folder / name)))
        return _Rules(self.levels + found) if found else self

    def ignore(self, path: str) -> bool:
        """Return whether an absolute path (folders end in ``/``) is ignored; the deepest file that names it decides."""
        for base, spec in reversed(self.levels):
            verdict = spec.check_file(path.removeprefix(base)).include
            if verdict is not None:
                return verdict
        return False


@dataclass
class _Walk:
    root: Path
    joined: frozenset[str]
    found: list[tuple[str, Path, os.stat_result]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def take(
    folder: Path, *, joined: Iterable[str] = (), max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES
) -> CodeSnapshot:
    """The snapshot of a folder without the paths that are joined in on the node; nothing is uploaded.

    Raises SnapshotError for a folder that is none, or one that is too large, naming the largest offenders.
    """
    root = folder.resolve()
    if not presence.is_folder(root):
        raise SnapshotError(f"{folder} is not a folder: name the one that holds the code")
    walk = _Walk(root, frozenset(joined))
    _descend(walk, root, "", _rules_above(root))
    walk.found.sort(key=lambda entry: entry[0])
    _guard(walk, max_bytes, max_files)
    files = tuple(_hashed(path, source, status) for path, source, status in walk.found)
    return CodeSnapshot(root=root, files=files, notices=tuple(walk.notices))


def pieces(path: Path) -> Iterator[bytes]:
    """A file's content in pieces."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _read_rules(path: Path) -> GitIgnoreSpec | None:
    if not path.is_file():
        return None
    return GitIgnoreSpec.from_lines(path.read_text(errors="surrogateescape").splitlines())


def _rules_above(root: Path) -> _Rules:
    above = list(root.parents)
    top = next((number for number, folder in enumerate(above) if (folder / ".git").exists()), None)
    rules = _Rules()
    if top is None or (root / ".git").exists():
        return rules
    for folder in reversed(above[: top + 1]):
        rules = rules.below(folder)
    return rules


def _descend(walk: _Walk, folder: Path, relative: str, rules: _Rules) -> None:
    rules = rules.below(folder)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        walk.notices.append(f"{relative or '.'} cannot be read and is left out: {error.strerror}")
        return
    for entry in entries:
        path = relative + entry.name
        if path in walk.joined:
            continue
        if entry.is_dir(follow_symlinks=False):
            if not never_travels(Path(entry.path)) and not rules.ignore(entry.path + "/"):
                _descend(walk, Path(entry.path), path + "/", rules)
        elif not rules.ignore(entry.path):
            _consider(walk, entry, path)


def never_travels(folder: Path) -> bool:
    """Return whether a folder is left out whatever ignore files say: repositories, caches, environments."""
    return folder.name in ALWAYS_SKIPPED or any((folder / mark).exists() for mark in ENVIRONMENT_MARKS)


def _consider(walk: _Walk, entry: os.DirEntry[str], path: str) -> None:
    source = Path(entry.path)
    if entry.is_symlink():
        source = source.resolve()
        if reason := link_problem(walk.root, source):
            walk.notices.append(f"{path} is left out: it is {reason}{_joining(path) if source.exists() else ''}")
            return
    status = source.stat()
    if stat.S_ISREG(status.st_mode):
        walk.found.append((path, source, status))


def link_problem(root: Path, target: Path) -> str | None:
    """Describe a symbolic link that does not travel; None for one to a file inside the folder."""
    if not target.exists():
        return f"a link to {target}, which does not exist"
    if target.is_dir():
        return f"a link to the folder {target}"
    return None if target.is_relative_to(root) else f"a link out of the folder, to {target}"


def _joining(path: str) -> str:
    return f"; `link: [{path}]` joins it in on the node (yard run: --link {path})"


def _guard(walk: _Walk, max_bytes: int, max_files: int) -> None:
    total = sum(status.st_size for _, _, status in walk.found)
    if total <= max_bytes and len(walk.found) <= max_files:
        return
    raise SnapshotError(
        f"{walk.root} holds {len(walk.found):,} files, {format_size(total)} together; a snapshot takes at most "
        f"{max_files:,} files and {format_size(max_bytes)}. The largest:\n{_offenders(walk)}\n"
        "List data and results in .yardignore (gitignore's rules); name data folders under link: to have them joined "
        "in on the node, or use live: /the/folder to run in it as it is."
    )


def _offenders(walk: _Walk) -> str:
    """The files and top folders that take most, one a line."""
    sizes: dict[str, tuple[int, int]] = {}
    for path, _, status in walk.found:
        head, slash, _ = path.partition("/")
        size, count = sizes.get(head + slash, (0, 0))
        sizes[head + slash] = (size + status.st_size, count + 1)
    largest = sorted(sizes.items(), key=lambda item: item[1], reverse=True)[:SHOWN_OFFENDERS]
    return "\n".join(f"  {format_size(size):>10}  {count:>6,} files  {name}" for name, (size, count) in largest)


def _hashed(path: str, source: Path, status: os.stat_result) -> CodeFile:
    with source.open("rb") as file:
        digest, size = hashlib.file_digest(file, "sha256"), file.tell()
    mode = 0o755 if status.st_mode & 0o111 else 0o644
    return CodeFile(path=path, source=source, size=size, mode=mode, sha256=digest.hexdigest())
