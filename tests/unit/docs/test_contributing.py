"""CONTRIBUTING promises that unit tests lie where their source lies, and what a first change comes to."""

from pathlib import Path

import pytest

from scripts import mutants

UNIT = Path(__file__).parents[1]
ROOT = UNIT.parents[1]
PACKAGES = ("service", "worker", "trainer", "torchyard")
TESTS = sorted(
    path.relative_to(UNIT)
    for path in UNIT.rglob("test_*.py")
    if path.parent == UNIT or path.relative_to(UNIT).parts[0] in PACKAGES
)


def subjects(folder: Path) -> set[str]:
    """Names of the modules and packages in a folder of the source, without the underscores of ``__main__``."""
    modules = {path.stem.strip("_") for path in folder.glob("*.py")}
    return modules | {path.name for path in folder.iterdir() if path.is_dir()}


@pytest.mark.parametrize("test", TESTS, ids=str)
def test_each_unit_test_lies_where_its_source_lies(test: Path) -> None:
    named = test.stem.removeprefix("test_")
    known = subjects(ROOT / test.parent)
    assert any(named == each or named.startswith(f"{each}_") for each in known), f"{test} tests no module there"


def test_the_first_change_is_a_planted_fault_that_its_test_notices() -> None:
    told = (ROOT / "CONTRIBUTING.md").read_text()
    (fault,) = [each for each in mutants.faults() if each.file == "service/scheduler/policy/order.py"]
    for promised in (fault.file, f"`{fault.old}` becomes `{fault.new}`", fault.test.partition("::")[2]):
        assert promised in told
