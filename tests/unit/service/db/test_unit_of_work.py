"""Only a committed unit of work wakes anybody."""

import ast
from collections.abc import Iterator
from pathlib import Path

import service

ROOT = Path(service.__file__).parent
#: Calls that reach others, by method, with what they are called on.
EFFECTS = {"notify": "hub", "nudge": "dispatcher", "launch": "dispatcher", "wake_scheduler": "ctx"}
#: Settings that are read anew are no transaction.
#: What other services have changed is committed there.
MAY = {"app.py", "infra/effects.py", "api/reload.py"}


def effects(source: str) -> Iterator[str]:
    """The calls in a module's source that reach others at once."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in EFFECTS:
            owner = node.func.value
            name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            if name.lstrip("_") == EFFECTS[node.func.attr]:
                yield f"{ast.unparse(node.func)} in line {node.lineno}"


def test_nobody_wakes_others_before_the_commit() -> None:
    found = {
        str(path.relative_to(ROOT)): calls
        for path in ROOT.rglob("*.py")
        if (calls := list(effects(path.read_text()))) and str(path.relative_to(ROOT)) not in MAY
    }
    assert not found, "record it in the unit of work (`unit_of(tx)`), which does it after the commit"


def test_such_calls_are_found() -> None:
    source = "ctx.hub.notify('jobs')\nself._ctx.dispatcher.nudge(node)\nctx.wake_scheduler()\nunit.nudge(node)\n"
    assert len(list(effects(source))) == 3
