"""A program's Python files, each parsed once: the entry script and what it imports from its own folder."""

import ast
import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

#: The text of a file, by its path inside the folder; None where there is none.
Read = Callable[[str], str | None]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

MAX_BYTES = 2**20
#: Files and characters of one program that are read; what lies beyond them is not known.
MAX_FILES = 200
MAX_PROGRAM = 4 * 2**20
_ALIAS_ROUNDS = 4


@dataclass(frozen=True, kw_only=True)
class Script:
    """One parsed file."""

    path: str
    """Inside the folder, as it is shown."""
    tree: ast.Module
    module: str = ""
    """Its dotted name for an import."""

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Everything in it."""
        return list(ast.walk(self.tree))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node that each node is a direct part of."""
        return {child: parent for parent in self.nodes for child in ast.iter_child_nodes(parent)}

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """Functions and classes by name, those that are defined under a condition too."""
        found: dict[str, Definition] = {}
        for node in self.nodes:
            if isinstance(node, Definition) and not isinstance(self._scope(node), Definition):
                found[node.name] = node
        return found

    def _scope(self, node: ast.AST) -> ast.AST:
        above = self.parents.get(node, self.tree)
        while above in self.parents and not isinstance(above, Definition):
            above = self.parents[above]
        return above

    @cached_property
    def imports(self) -> list[tuple[str, str]]:
        """Local names with the dotted names that they stand for."""
        return [pair for node in self.nodes for pair in self._imported(node)]

    def _imported(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            base = self._base(node)
            yield from ((alias.asname or alias.name, _joined(base, alias.name)) for alias in node.names)

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        is_package = posixpath.basename(self.path) == "__init__.py"
        parts = self.module.split(".") if self.module else []
        kept = parts[: len(parts) - node.level + is_package]
        return _joined(".".join(kept), node.module or "")

    @cached_property
    def imported_modules(self) -> list[str]:
        """Dotted names that may be modules: for ``from a import b`` both ``a`` and ``a.b``."""
        found: list[str] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = self._base(node)
                found += [base, *(_joined(base, alias.name) for alias in node.names)]
        return [name for name in found if name]

    @cached_property
    def names(self) -> dict[str, str]:
        """Map names to what they stand for: imports, and variables that are another name for something imported."""
        names = dict(self.imports)
        for _ in range(_ALIAS_ROUNDS):
            before = len(names)
            for node in self.nodes:
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
                    self._alias(node, names)
            if len(names) == before:
                break
        return names

    def _alias(self, node: ast.Assign, names: dict[str, str]) -> None:
        dotted = _dotted(node.value, names)
        for target in node.targets:
            if dotted is not None and isinstance(target, ast.Name):
                names.setdefault(target.id, dotted)

    def dotted(self, node: ast.expr) -> str | None:
        """The whole name of something imported, such as ``torch.multiprocessing.spawn``; None for anything else."""
        return _dotted(node, self.names)


def _dotted(node: ast.expr, names: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, names)
        return None if base is None else f"{base}.{node.attr}"
    return None


def _joined(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def parse(path: str, text: str, module: str = "") -> Script | None:
    """The file; None for what is no Python of this version, or is larger than any script."""
    if len(text) > MAX_BYTES:
        return None
    try:
        return Script(path=path, tree=ast.parse(text), module=module)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def syntax_error(text: str) -> SyntaxError | None:
    """Return where this version of Python cannot read a text; None if it can, or fails otherwise."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


@dataclass(frozen=True, kw_only=True)
class ProgramSource:
    """The entry script and the files of its folder that it imports."""

    entry: Script
    modules: Mapping[str, Script]
    """Imported files by their dotted names."""

    @property
    def scripts(self) -> list[Script]:
        """All of them, the entry first."""
        return [self.entry, *self.modules.values()]


def program(read: Read, script: str | None = None, module: str | None = None) -> ProgramSource | None:
    """The program that a script's path or a module's name starts; None if its source is not there or is no Python."""
    path = posixpath.normpath(script) if script else _module_path(read, "", module or "", runs=True)
    text = read(path) if path else None
    if path is None or text is None or (entry := parse(path, text, module or "")) is None:
        return None
    # Python looks beside a script, and for ``-m`` in the working folder.
    root = posixpath.dirname(path) if script else ""
    return ProgramSource(entry=entry, modules=_walk(read, entry, list(dict.fromkeys((root, "", "src")))))


def _walk(read: Read, entry: Script, roots: list[str]) -> dict[str, Script]:
    found: dict[str, Script] = {}
    seen, waiting, left = {entry.path}, [entry], MAX_PROGRAM
    while waiting:
        for name in waiting.pop().imported_modules:
            for dotted in _with_packages(name):
                path = next((path for root in roots if (path := _module_path(read, root, dotted))), None)
                if path is None or path in seen or len(seen) >= MAX_FILES:
                    continue
                seen.add(path)
                text = read(path) or ""
                left -= len(text)
                if left > 0 and (script := parse(path, text, dotted)) is not None:
                    found[dotted] = script
                    waiting.append(script)
    return found


def _with_packages(name: str) -> Iterator[str]:
    """``a``, ``a.b`` and ``a.b.c``: the packages around a module are imported too."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _module_path(read: Read, root: str, dotted: str, *, runs: bool = False) -> str | None:
    place = posixpath.join(root, *dotted.split("."))
    for path in (f"{place}.py", f"{place}/{'__main__' if runs else '__init__'}.py"):
        if read(path) is not None:
            return path
    return None
