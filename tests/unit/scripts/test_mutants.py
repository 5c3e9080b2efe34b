"""The planted faults fit the code: each has one place and a test, which its row of the page names; each row has two."""

import re
from collections import Counter
from pathlib import Path

import pytest

from scripts import mutants

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "techniques.md").read_text()
INVARIANTS = (ROOT / "docs" / "architecture.md").read_text()
SYSTEMS, _, CORRECTIONS = PAGE.partition("## Commonly taught wrong")

#: Row of the faults that break an invariant of docs/architecture.md.
INVARIANT = "a"


def rows() -> dict[str, str]:
    """The lines of both tables by the names that faults give them: 4, and c4 for what is taught wrong."""
    lines = {
        f"{kind}{number}": line for kind, part in (("", SYSTEMS), ("c", CORRECTIONS)) for number, line in _of(part)
    }
    assert len(lines) == 22 + 12
    return lines


def _of(part: str) -> list[tuple[str, str]]:
    return [(line[1], line[0]) for line in re.finditer(r"^\| (\d+) \|.*", part, re.MULTILINE)]


@pytest.mark.parametrize("fault", mutants.faults(), ids=lambda fault: f"{fault.row}-{fault.file}")
def test_a_fault_has_one_place_and_a_test(fault: mutants.Fault) -> None:
    source = (ROOT / fault.file).read_text()
    assert fault.planted(source) != source
    path, _, name = fault.test.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text()


def test_each_row_has_two_faults_or_more_for_tests_that_it_names() -> None:
    planted, lines = mutants.faults(), rows()
    for fault in planted:
        if fault.row == INVARIANT:
            assert f"`{fault.test.partition('::')[0]}`" in INVARIANTS
        else:
            assert f"`{fault.test.partition('[')[0]}`" in lines[fault.row], (
                f"row {fault.row} does not name {fault.test}"
            )
    count = Counter(fault.row for fault in planted)
    assert {row for row in lines if count[row] < 2} == set()


def test_a_fault_without_a_place_is_an_error() -> None:
    fault = mutants.Fault(row="1", file="a.py", old="x", new="y", test="t")
    with pytest.raises(ValueError, match=r"occurs 2 times in a\.py"):
        fault.planted("x x")


def test_the_page_tells_their_number() -> None:
    assert f"{len(mutants.faults())} planted faults" in PAGE


def test_ten_are_quick() -> None:
    assert sum(fault.quick for fault in mutants.faults()) == 10


def test_a_fault_is_killed_by_a_test_that_fails_and_taken_back(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("ONE = 1\nTWO = 2\n")
    (tmp_path / "test_one.py").write_text(
        "from one import *\n\ndef test(): assert ONE == 1\ndef test_bad(): assert not ONE\n"
    )
    given = {"row": "1", "file": "one.py", "test": "test_one.py::test"}
    assert mutants.outcome(mutants.Fault(old="= 1", new="= 3", **given), tmp_path) == "killed"
    assert mutants.outcome(mutants.Fault(old="= 2", new="= 3", **given), tmp_path) == "SURVIVED"
    assert (tmp_path / "one.py").read_text() == "ONE = 1\nTWO = 2\n"
    assert mutants.failing(["test_one.py::test"], tmp_path) == ""
    assert "test_bad" in mutants.failing(["test_one.py::test", "test_one.py::test_bad"], tmp_path)
