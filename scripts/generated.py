"""Pages of the documentation that are made from the code, whole or between two marks."""

import sys
from pathlib import Path


def between(page: str, name: str, text: str) -> str:
    """Return the page with the text in place of what stands between the marks ``<!-- name: begin -->`` and ``end``."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"


def write_or_check(path: Path, text: str, script: str) -> None:
    """Write the page; with `--check`, exit with the advice if it is not up to date."""
    if "--check" not in sys.argv[1:]:
        path.write_text(text)
    elif path.read_text() != text:
        sys.exit(f"docs/{path.name} is stale: run python -m scripts.{script}")
