"""How a script of the days of ``torch.distributed.launch`` wants to be told its number on the node.

Source: https://docs.pytorch.org/docs/stable/distributed.html#launch-utility: torch before 2.0 passed ``--local_rank``,
later versions pass ``--local-rank``.
"""

import ast
from collections.abc import Sequence
from pathlib import Path

from worker import argv

#: What today's torch passes; for scripts that do not tell.
DEFAULT = "--local-rank"
_SPELLINGS = (DEFAULT, "--local_rank")
_VARIABLE = "LOCAL_RANK"
_MAX_SOURCE = 2**20


def option(arguments: Sequence[str], cwd: Path) -> str | None:
    """The option for a command's Python arguments; None when its script takes its number from the environment."""
    program = argv.python_program(arguments)
    return declared(_text(cwd / program.script) if program.script else _module_text(program.module, cwd))


def declared(source: str) -> str | None:
    """The spelling that a script declares; None if it declares none and reads LOCAL_RANK, else `DEFAULT`."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return DEFAULT
    words = [word for node in nodes if isinstance(node, ast.Call) for word in node.args]
    passed = {word.value for word in words if isinstance(word, ast.Constant)}
    for spelling in _SPELLINGS:
        if spelling in passed:
            return spelling
    reads = any(isinstance(node, ast.Constant) and node.value == _VARIABLE for node in nodes)
    return None if reads else DEFAULT


def _module_text(name: str | None, cwd: Path) -> str:
    if not name:
        return ""
    place = cwd.joinpath(*name.split("."))
    return _text(place.with_suffix(".py")) or _text(place / "__main__.py")


def _text(path: Path) -> str:
    try:
        known = path.is_file() and path.stat().st_size <= _MAX_SOURCE
        return path.read_text(errors="replace") if known else ""
    except OSError:
        return ""
