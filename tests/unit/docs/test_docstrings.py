"""First lines of docstrings: an imperative or a noun phrase, never a question that the code answers."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("torchyard", "service", "worker", "trainer")
CLAUSE = re.compile(r"(What|Whether|Where|How|Who|When|Which|That)\b")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def test_docstrings_begin_with_a_noun_or_an_imperative() -> None:
    lines = list(_first_lines())
    assert len(lines) > 1000
    assert [line for line in lines if CLAUSE.match(line.partition(": ")[2])] == []


def _first_lines() -> Iterator[str]:
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            if "node_modules" in file.parts:
                continue
            for each in ast.walk(ast.parse(file.read_text())):
                if isinstance(each, Documented) and (text := ast.get_docstring(each)):
                    yield f"{file.relative_to(ROOT)} {getattr(each, 'name', '')}: {text.partition(chr(10))[0]}"
