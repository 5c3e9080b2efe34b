"""One name for one class: a reader who meets a name knows which it is, whatever the file."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("torchyard", "service", "worker", "trainer")
#: Rows of the tables, each named after what the API or a message shows of it.
ROWS = Path("service/db/models.py")
SHOWN = ("torchyard/api/", "torchyard/wire/")


def test_no_two_classes_have_one_name() -> None:
    found = _classes()
    assert {name for name, files in found.items() if ROWS in files} >= {"Job", "Node"}
    assert {name: files for name, files in found.items() if len(files) > 1 and not _row_and_shown(files)} == {}


def _row_and_shown(files: list[Path]) -> bool:
    return len(files) == 2 and ROWS in files and any(str(each).startswith(SHOWN) for each in files)


def _classes() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for name, file in _named():
        found[name].append(file)
    return found


def _named() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            if "node_modules" not in file.parts:
                names = [each.name for each in ast.parse(file.read_text()).body if isinstance(each, ast.ClassDef)]
                yield from ((name, file.relative_to(ROOT)) for name in names)
