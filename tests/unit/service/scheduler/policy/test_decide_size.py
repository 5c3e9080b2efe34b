"""What has to be read to check a decision stays small enough to be read in one sitting."""

import ast
from pathlib import Path

import service

ROOT = Path(service.__file__).parents[1]
#: Lines of the scheduler's modules that `decide` imports, and those of them that are neither empty nor documentation.
LINES, CODE = 3650, 2400


def imported(module: str, found: set[str]) -> set[str]:
    """The scheduler's modules that this one imports, and that those import."""
    found.add(module)
    for node in ast.walk(ast.parse(source(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("service.scheduler."):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            for name in {str(node.module), *inner} - found:
                if path(name).is_file():
                    imported(name, found)
    return found


def path(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


def source(module: str) -> str:
    return path(module).read_text()


def code_lines(text: str) -> int:
    """Lines that are neither empty, comments nor docstrings."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            first = node.body[0]
            documented |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and at not in documented for at, line in lines)


def test_a_decision_is_read_in_one_sitting() -> None:
    modules = imported("service.scheduler.policy.decide", set())
    assert "service.scheduler.model.topology" in modules
    assert not [module for module in modules if ".explain" in module]
    texts = [source(module) for module in modules]
    assert sum(len(text.splitlines()) for text in texts) <= LINES
    assert sum(map(code_lines, texts)) <= CODE
