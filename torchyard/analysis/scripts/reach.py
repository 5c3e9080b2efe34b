"""Calls that a program makes when it is started, and those that depend on a rank that a launcher has set.

A function counts as called where its name is mentioned by code that runs, and all methods of a class with the class.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchyard.analysis.scripts.source import Definition, ProgramSource, Script

#: What a launcher tells the processes that it starts.
RANK_WORDS = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "TORCHELASTIC_RUN_ID", "SLURM_PROCID"}
)
_LOCAL_RANK = re.compile(r"local_?rank$", re.IGNORECASE)
_ASKS_LAUNCHER = frozenset({"is_torchelastic_launched", "is_torchrun_launched"})
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_EXITS = frozenset({"exit", "_exit", "abort"})
_ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call that runs."""

    script: Script
    node: ast.Call
    name: str
    """The whole name of what is called."""
    guarded: bool
    """It depends on what a launcher has set."""


def calls(program: ProgramSource) -> Iterator[Call]:
    """Call of what was imported, in code that runs from the entry's first line on."""
    return _Reach(program).calls()


class _Reach:
    def __init__(self, program: ProgramSource) -> None:
        self._program = program
        self._ranks = _rank_names(program)
        #: Code that runs, and whether only under a launcher's condition.
        self._guarded: dict[ast.AST, bool] = {}
        self._calls: dict[ast.Call, Call] = {}

    def calls(self) -> Iterator[Call]:
        waiting: list[tuple[Script, ast.AST, bool]] = [(each, each.tree, False) for each in self._program.scripts]
        while waiting:
            script, root, guarded = waiting.pop()
            if self._guarded.get(root, True) and (root not in self._guarded or not guarded):
                self._guarded[root] = guarded
                waiting += self._follow(script, root, guarded)
        yield from self._calls.values()

    def _follow(self, script: Script, root: ast.AST, guarded: bool) -> Iterator[tuple[Script, ast.AST, bool]]:
        """Note the calls in a piece of code that runs, and find the definitions that it mentions."""
        for node in self._running(script, root):
            if isinstance(node, ast.Call):
                self._note(script, node, root, guarded)
            if isinstance(node, Definition) and node is not root:
                if node.decorator_list:  # a framework may call it
                    yield script, node, guarded
            elif isinstance(node, ast.Name | ast.Attribute) and (found := self._definition(script, node)):
                yield *found, guarded or self._depends(script, node, root)

    def _running(self, script: Script, root: ast.AST) -> Iterator[ast.AST]:
        """Statements that run with a piece of code: of a module, not the bodies of what it defines."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            yield node
            if isinstance(root, ast.Module) and isinstance(node, Definition):
                continue
            if script is not self._program.entry and isinstance(node, ast.If) and _asks_for_main(node.test):
                continue
            waiting += ast.iter_child_nodes(node)

    def _note(self, script: Script, node: ast.Call, root: ast.AST, guarded: bool) -> None:
        name = script.dotted(node.func)
        if name is not None:
            known = self._calls.get(node)
            guarded = (guarded or self._depends(script, node, root)) and (known is None or known.guarded)
            self._calls[node] = Call(script=script, node=node, name=name, guarded=guarded)

    def _definition(self, script: Script, node: ast.Name | ast.Attribute) -> tuple[Script, Definition] | None:
        if isinstance(node, ast.Name) and node.id in script.definitions:
            return script, script.definitions[node.id]
        dotted = script.dotted(node)
        return None if dotted is None else self._defined(dotted, _ROUNDS)

    def _defined(self, dotted: str, rounds: int) -> tuple[Script, Definition] | None:
        """Find the definition of a dotted name in the program, also if a package passes it on."""
        module, _, name = dotted.rpartition(".")
        script = self._program.modules.get(module)
        if script is None or not rounds:
            return None
        if name in script.definitions:
            return script, script.definitions[name]
        passed = script.names.get(name)
        return None if passed is None else self._defined(passed, rounds - 1)

    def _depends(self, script: Script, node: ast.AST, root: ast.AST) -> bool:
        """Return whether a condition around a piece of code, or one before it that leaves, asks for a rank."""
        while node is not root and node in script.parents:
            parent = script.parents[node]
            test = getattr(parent, "test", None)
            if test is not None and test is not node and self._asks(test):
                return True
            if isinstance(parent, ast.Try) and any(map(self._asks, parent.body)):
                return True
            if any(self._leaves(each) for each in _before(parent, node)):
                return True
            node = parent
        return False

    def _leaves(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.If) and self._asks(statement.test) and any(map(_is_end, statement.body))

    def _asks(self, code: ast.AST) -> bool:
        return any(_says_rank(node, self._ranks) for node in ast.walk(code))


def _before(parent: ast.AST, node: ast.AST) -> list[ast.stmt]:
    """The statements that come before one in its block."""
    for block in (getattr(parent, "body", None), getattr(parent, "orelse", None), getattr(parent, "finalbody", None)):
        if isinstance(block, list) and node in block:
            return list(block[: block.index(node)])
    return []


def _is_end(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return last_name(statement.value.func) in _EXITS
    return isinstance(statement, _LEAVES)


def _asks_for_main(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))


class _SourceNames:
    """Variables and functions by their source, such as ``args.rank``; the last word of each is looked at first."""

    def __init__(self) -> None:
        self._whole: set[str] = set()
        self._last: set[str] = set()

    def __len__(self) -> int:
        return len(self._whole)

    def add(self, name: str) -> None:
        self._whole.add(name)
        self._last.add(name.rpartition(".")[2])

    def hold(self, node: ast.Name | ast.Attribute) -> bool:
        return last_name(node) in self._last and ast.unparse(node) in self._whole


def _rank_names(program: ProgramSource) -> _SourceNames:
    """Names whose value comes from what a launcher has set."""
    found = _SourceNames()
    for _ in range(_ROUNDS):
        before = len(found)
        for node in (node for script in program.scripts for node in script.nodes):
            for name in list(_tainted(node, found)):
                found.add(name)
        if len(found) == before:
            break
    return found


def _tainted(node: ast.AST, known: _SourceNames) -> Iterator[str]:
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        if any(_says_rank(each, known) for each in ast.walk(node.value)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (ast.unparse(target) for target in targets)
    elif isinstance(node, ast.FunctionDef):
        returned = [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None]
        if any(_says_rank(each, known) for value in returned for each in ast.walk(value)):
            yield node.name


def _says_rank(node: ast.AST, known: _SourceNames) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in RANK_WORDS if isinstance(node.value, str) else False
    if isinstance(node, ast.Name | ast.Attribute):
        name = last_name(node)
        return _LOCAL_RANK.search(name) is not None or name in _ASKS_LAUNCHER or known.hold(node)
    return False


def last_name(node: ast.expr) -> str:
    """``c`` of ``a.b.c``; empty for what has no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
