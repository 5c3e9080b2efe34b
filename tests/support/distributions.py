"""Libraries that `pip install torchyard` brings, by pyproject.toml and what is installed here; none is downloaded."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
OURS = {"torchyard", "torchyard-box"}


def project(folder: Path = ROOT) -> dict[str, Any]:
    """The `project` table of a pyproject.toml."""
    return dict(tomllib.loads((folder / "pyproject.toml").read_text())["project"])


def brought(*extras: str) -> set[str]:
    """Canonical names of the distributions that torchyard brings with these extras, without its own."""
    table = project()
    found: set[str] = set()
    waiting = [Requirement(text) for text in _own(table, {*extras})]
    done: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        each = waiting.pop()
        name, wanted = canonicalize_name(each.name), frozenset(each.extras)
        if (name, wanted) in done:
            continue
        done.add((name, wanted))
        if name == "torchyard":
            waiting += map(Requirement, _own(table, wanted))
        elif name not in OURS:
            found.add(name)
            waiting += _applying(metadata.requires(name) or (), wanted)
    return found


def _own(table: dict[str, Any], extras: Iterable[str]) -> list[str]:
    optional = table["optional-dependencies"]
    listed = [*table["dependencies"], *(text for extra in extras for text in optional[extra])]
    return [text for text in listed if _applies(Requirement(text), ("",))]


def _applying(texts: Iterable[str], extras: Iterable[str]) -> Iterator[Requirement]:
    for text in texts:
        requirement = Requirement(text)
        if _applies(requirement, ("", *extras)):
            yield requirement


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)


def link(names: Iterable[str], site: Path) -> None:
    """Fill a folder with links to installed distributions, so that nothing else can be imported from it."""
    for name in names:
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            target = site / top
            if not target.is_symlink():
                target.symlink_to(Path(str(distribution.locate_file(top))))


def pinned(name: str, requirements: Iterable[str]) -> list[str]:
    """The exact versions that requirements ask for of a distribution."""
    return [found[1] for text in requirements if (found := re.fullmatch(rf"{name}(?:\[.*\])?==(\S+)", text))]
