"""Routes call services that own their transactions; they open none themselves."""

import ast
from pathlib import Path

import pytest

API = Path(__file__).parents[4] / "service" / "api"
MODULES = sorted(API.rglob("*.py"))
TRANSACTIONS = {"read", "write", "unit_of_work"}


def transactions(source: str) -> list[str]:
    """Calls such as ``ctx.db.read()`` and ``db.unit_of_work(now)``."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in TRANSACTIONS
        and ast.unparse(node.func.value).rpartition(".")[2] in {"db", "ctx"}
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(API)))
def test_no_route_opens_a_transaction(module: Path) -> None:
    assert transactions(module.read_text()) == []


def test_a_transaction_in_a_route_would_be_seen() -> None:
    assert transactions("with ctx.db.read() as tx: pass") == ["ctx.db.read()"]
    assert transactions("with ctx.unit_of_work() as unit: pass") == ["ctx.unit_of_work()"]
    assert transactions("path.read()") == []
