"""The packages that are installed for an interpreter, by the names of the folders of their metadata.

Nothing of them is opened, imported or run, and the interpreter is not started. Run as a program by root, it becomes the
job's account before it looks, and prints as JSON what that may read; so it needs the standard library alone.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

#: Packages that are told, and bytes of their names and versions.
MAX_PACKAGES = 3000
MAX_BYTES = 200_000
#: Entries of a folder that are looked at.
MAX_ENTRIES = 50_000
_MAX_CONFIG = 65_536
_ENDINGS = (".dist-info", ".egg-info")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_]{0,63}")
_NUMBERS = re.compile(r"\d+\.\d+(\.\d+\w*)?")
_CONDA = re.compile(r"python-(3\.\d+[^-]*)-[^-]*\.json")
_FOLDER = re.compile(r"python(3\.\d+t?)")


class Installed(NamedTuple):
    """The packages that were found."""

    python: str | None
    """Version of Python, as far as it can be told."""
    packages: dict[str, str]
    """Versions by normalised name; empty where the folder's name has none."""
    left_out: int
    """Packages beyond the most."""
    error: str | None
    """What could not be read."""
    watched: list[str]
    """Paths whose modification times change with all this."""


class _Site(NamedTuple):
    """An interpreter's version, and the folders that it imports packages from, the first that counts first."""

    python: str | None
    folders: list[Path]


def read(python: Path, home: Path | None) -> Installed:
    """Return what is installed for an interpreter, given by an absolute path; `home` is where its user's own packages
    may be.
    """
    prefix = python.parent.parent
    config = _config(prefix)
    site = _plain_site(python, home) if config is None else _venv_site(prefix, config, home)
    found: dict[str, str] = {}
    known, errors = False, []
    for folder in site.folders:
        try:
            names = sorted(_metadata(folder))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            errors.append(f"{folder} cannot be read: {error.strerror}")
            continue
        known = True
        for name, version in filter(None, map(distribution, names)):
            found.setdefault(name, version)
    if not known and not errors:
        errors.append(f"no folder of packages is known for {python}")
    kept = bounded(found)
    watched = [python, prefix / "pyvenv.cfg", *site.folders]
    return Installed(site.python, kept, len(found) - len(kept), "; ".join(errors) or None, [*map(str, watched)])


def distribution(folder: str) -> tuple[str, str] | None:
    """Return name and version of a package by the name of its metadata's folder: ``ruamel.yaml-0.18.6.dist-info``."""
    words = folder.rpartition(".")[0].split("-")
    end = next((at for at in range(1, len(words)) if words[at][:1].isdigit()), len(words))
    name = re.sub(r"[-_.]+", "-", "-".join(words[:end])).lower()
    version = words[end] if end < len(words) else ""
    return (name, version if _VERSION.fullmatch(version) else "") if _NAME.fullmatch(name) else None


def bounded(packages: dict[str, str]) -> dict[str, str]:
    """Return as many of the packages as are told, by name."""
    kept: dict[str, str] = {}
    size = 0
    for name in sorted(packages)[:MAX_PACKAGES]:
        size += len(name) + len(packages[name])
        if size > MAX_BYTES:
            break
        kept[name] = packages[name]
    return kept


def _metadata(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        yield from (entry.name for entry in islice(entries, MAX_ENTRIES) if entry.name.endswith(_ENDINGS))


def _config(prefix: Path) -> dict[str, str] | None:
    """Return the settings of a venv; None if the folder is none."""
    try:
        descriptor = os.open(prefix / "pyvenv.cfg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        text = os.read(descriptor, _MAX_CONFIG).decode(errors="replace")
    finally:
        os.close(descriptor)
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _venv_site(prefix: Path, config: dict[str, str], home: Path | None) -> _Site:
    """Return the site of a venv, and behind it that of the Python that it was made from, if it sees that."""
    version = _version(config.get("version_info") or config.get("version") or "")
    minors = _minors(prefix)
    minor = next((one for one in minors if version is None or one.rstrip("t") == _minor(version)), None)
    folders = _folders(prefix, minor)
    base = Path(config.get("home", ""))
    if config.get("include-system-site-packages", "").lower() == "true" and base.is_absolute():
        folders += [*_own(home, minor), *_folders(base.parent, minor)]
    return _Site(version or minor, _once(folders))


def _plain_site(python: Path, home: Path | None) -> _Site:
    """Return the site of an interpreter that is in no venv: the system's, conda's, or one that was built."""
    real = _real(python)
    prefix = real.parent.parent
    named, minors = _FOLDER.fullmatch(real.name), _minors(prefix)
    minor = named[1] if named else minors[0] if len(minors) == 1 else None
    return _Site(_conda_version(prefix) or minor, _once([*_own(home, minor), *_folders(prefix, minor)]))


def _minors(prefix: Path) -> list[str]:
    """Return the versions of Python that have a folder below a prefix."""
    return sorted(found[1] for name in _names(prefix / "lib") if (found := _FOLDER.fullmatch(name)))


def _folders(prefix: Path, minor: str | None) -> list[Path]:
    """Return where the packages of an interpreter may be, Debian's ways among them."""
    if minor is None:
        return []
    places = (
        f"local/lib/python{minor}/dist-packages",
        f"lib/python{minor}/site-packages",
        f"lib64/python{minor}/site-packages",
        f"lib/python{minor}/dist-packages",
        "lib/python3/dist-packages",
    )
    return [prefix / place for place in places]


def _own(home: Path | None, minor: str | None) -> list[Path]:
    return [] if home is None or minor is None else [home / f".local/lib/python{minor}/site-packages"]


def _once(folders: list[Path]) -> list[Path]:
    return list({_real(folder): folder for folder in reversed(folders)}.values())[::-1]


def _real(path: Path) -> Path:
    # `Path.resolve` raises RuntimeError for links in a circle.
    return Path(os.path.realpath(path))


def _conda_version(prefix: Path) -> str | None:
    found = (_CONDA.fullmatch(name) for name in _names(prefix / "conda-meta"))
    return next((_version(match[1]) for match in found if match), None)


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, MAX_ENTRIES)]
    except OSError:
        return []


def _version(text: str) -> str | None:
    found = _NUMBERS.match(text)
    return found[0] if found else None


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def main(python: str, home: str, *account: str) -> None:
    """Print what is installed, as seen by an account: its user, its group and its other groups, by number."""
    if account:
        uid, gid, *groups = map(int, account)
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)
    json.dump(read(Path(python), Path(home) if home else None)._asdict(), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
