"""Writes the messages that the API refuses with, by code: what `zh-CN.problems.ts` of the dashboard has words for.

python -m scripts.messages [--check]
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from service.errors import nothing_named
from torchyard import problems
from torchyard.spec import error_messages

ROOT = Path(__file__).parents[1]
FILE = ROOT / "service/dashboard/src/locales/problems.json"


def collected() -> dict[str, dict[str, str]]:
    """Return the titles of problem types, and the templates of messages; ValueError for a code with two of them."""
    messages = dict(error_messages.TEMPLATES)
    for code, template in _written_out():
        if messages.setdefault(code, template) != template:
            raise ValueError(f"{code} has two templates: give one of them another code")
    return {
        "titles": {kind: problem.title for kind, problem in problems.KINDS.items()},
        "messages": dict(sorted(messages.items())),
    }


def _written_out() -> Iterator[tuple[str, str]]:
    """Yield code and template of each call in the sources that has them as literals."""
    for package in ("torchyard", "service"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.Call(
                        func=ast.Name(id="TranslatableText"),
                        args=[ast.Constant(value=str(code)), ast.Constant(value=str(template))],
                    ):
                        yield code, template
                    case ast.Call(func=ast.Name(id="not_found"), args=[ast.Constant(value=str(what)), _]):
                        yield nothing_named(what)


def text() -> str:
    """Return the file as it should be."""
    return json.dumps(collected(), ensure_ascii=False, indent=1) + "\n"


def main() -> None:
    """Write the file; with `--check`, exit with the advice if it is not up to date."""
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text())
    elif FILE.read_text() != text():
        sys.exit(f"{FILE.name} is stale: run python -m scripts.messages, then translate what is new")


if __name__ == "__main__":
    main()
