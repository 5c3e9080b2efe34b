"""The planted faults fit the code: each has one place, a test, and a row that names the test's file."""

from pathlib import Path

import pytest

from scripts import mutants

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "techniques.md").read_text()


@pytest.mark.parametrize("fault", mutants.faults(), ids=lambda fault: f"{fault.row}-{fault.file}")
def test_a_fault_has_one_place_and_a_test(fault: mutants.Fault) -> None:
    source = (ROOT / fault.file).read_text()
    assert fault.planted(source) != source
    path, _, name = fault.test.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text()


def test_a_fault_without_a_place_is_an_error() -> None:
    fault = mutants.Fault(row="1", file="a.py", old="x", new="y", test="t")
    with pytest.raises(ValueError, match=r"occurs 2 times in a\.py"):
        fault.planted("x x")


def test_the_page_tells_their_number() -> None:
    assert f"{len(mutants.faults())} planted faults" in PAGE


def test_ten_are_quick() -> None:
    assert sum(fault.quick for fault in mutants.faults()) == 10
