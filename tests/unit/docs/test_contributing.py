"""CONTRIBUTING promises that unit tests lie where their source lies."""

from pathlib import Path

import pytest

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
