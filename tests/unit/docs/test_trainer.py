"""The comparison in docs/trainer.md counts its lines right, and its scripts are Python."""

import ast
import difflib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "trainer.md").read_text()
SCRIPTS: dict[str, str] = dict(re.findall(r"```python (\w+)\n(.*?)```", PAGE, re.DOTALL))
NAMES = {
    "TorchYard": "torchyard",
    "Accelerate": "accelerate",
    "Lightning Fabric": "fabric",
    "Ray Train": "ray",
    "Determined": "determined",
}
STATED = {name: int(count) for name, count in re.findall(r"^\| ([\w ]+) \| (\d+) \|", PAGE, re.MULTILINE)}


def added(script: str) -> int:
    """Lines that are new or changed against the plain script; indentation alone is no change."""
    plain, other = ([line.strip() for line in text.splitlines()] for text in (SCRIPTS["plain"], script))
    return sum(line.startswith("+ ") for line in difflib.ndiff(plain, other) if line[2:].strip())


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_counted(name: str) -> None:
    assert added(SCRIPTS[NAMES[name]]) == STATED[name]


def test_every_script_is_python_and_every_row_has_one() -> None:
    for script in SCRIPTS.values():
        ast.parse(script)
    assert set(NAMES.values()) | {"plain"} == set(SCRIPTS)
    assert set(STATED) == set(NAMES)
