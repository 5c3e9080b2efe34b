"""The glossary has one word for one thing, and each word is a type that exists."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "glossary.md"
ROW = re.compile(r"^\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \| `(?P<name>[\w.]+)` \|$", re.MULTILINE)
ROWS = [(row["term"], row["meaning"], row["name"]) for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))]


def owner(name: str) -> ModuleType:
    """The module of a dotted name, which is the longest part of it that imports."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as missing:
            if missing.name is None or not f"{module}.".startswith(f"{missing.name}."):
                raise
            continue
        return found
    raise AssertionError(f"nothing imports of {name}")


def found(name: str) -> object:
    module = owner(name)
    at: object = module
    for part in name.removeprefix(module.__name__).strip(".").split("."):
        at = getattr(at, part) if part else at
    return at


def test_every_line_of_a_table_is_a_row() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    headings = [line for line in lines if line.startswith("| term ")]
    assert len(lines) - len(headings) == len(ROWS) > 60


@pytest.mark.parametrize(("term", "meaning", "name"), ROWS, ids=[term for term, _, _ in ROWS])
def test_each_term_names_what_exists(term: str, meaning: str, name: str) -> None:
    assert found(name) is not None
    assert meaning.endswith("."), f"{term} needs a sentence"


def test_one_word_for_one_thing() -> None:
    terms = [term.lower() for term, _, _ in ROWS]
    types = [name for _, _, name in ROWS]
    assert len(set(terms)) == len(terms)
    assert len(set(types)) == len(types)


def test_terms_of_a_table_are_in_order() -> None:
    for table in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        terms = [row["term"].lower() for row in ROW.finditer(table)]
        assert terms == sorted(terms)
