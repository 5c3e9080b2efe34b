"""docs/techniques.md is whole: every row, and behind each a valid recipe, a file, a test and a figure."""

import re
from pathlib import Path

import pytest
import yaml

from torchyard.recipe import Recipe
from torchyard.spec import JobSpec, Resources
from trainer.strategies import STRATEGIES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "techniques.md").read_text()
SYSTEMS = 22
MISTAKES = 12


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if re.match(r"\| \d+ \|", line)]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def assert_is_a_test(reference: str) -> None:
    path, _, name = reference.partition("::")
    source = ROOT / path
    assert source.is_file(), reference
    assert f"def {name}(" in source.read_text(), reference


@pytest.mark.parametrize("row", rows("The systems"), ids=lambda row: row[0])
def test_a_technique_has_recipe_file_test_and_figure(row: list[str]) -> None:
    _, technique, recipe, file, test, figure = row
    assert technique
    assert figure
    for text in named(recipe):
        if text.startswith("{"):
            Recipe.model_validate(yaml.safe_load(text))
        elif text.startswith("resources:"):
            Resources.model_validate(yaml.safe_load(text)["resources"])
        elif text.startswith("examples/"):
            JobSpec.model_validate(yaml.safe_load((ROOT / text).read_text()))
    assert [path for path in named(file) if (ROOT / path).exists()], file
    for reference in named(test):
        assert_is_a_test(reference)


@pytest.mark.parametrize("row", rows("Commonly taught wrong"), ids=lambda row: row[0])
def test_what_is_taught_wrong_has_its_test(row: list[str]) -> None:
    references = [text for text in named(row[2]) if text.startswith("tests/")]
    assert references
    for reference in references:
        assert_is_a_test(reference)


def test_none_is_missing() -> None:
    assert [row[0] for row in rows("The systems")] == [str(number) for number in range(1, SYSTEMS + 1)]
    assert [row[0] for row in rows("Commonly taught wrong")] == [str(number) for number in range(1, MISTAKES + 1)]
    for name in STRATEGIES:
        assert re.search(rf"\b{name}\b", PAGE), name


def test_the_sections_that_it_points_to_exist() -> None:
    for path in re.findall(r"\]\(([\w.-]+\.md)\)", PAGE):
        assert (ROOT / "docs" / path).exists()
