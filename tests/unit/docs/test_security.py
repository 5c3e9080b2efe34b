"""SECURITY.md cannot rot: each row of what is enforced names a test that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "SECURITY.md").read_text()


def rows() -> list[list[str]]:
    enforced = PAGE.partition("## What is enforced")[2]
    lines = [line for line in enforced.splitlines() if line.startswith("| ") and not line.startswith("| against")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_each_row_says_what_is_enforced_what_stays_open_and_its_test() -> None:
    assert rows()
    for row in rows():
        assert len(row) == 4, row[0]
        assert all(row), row[0]
        assert re.fullmatch(r"`tests/[\w/.]+`(, `tests/[\w/.]+`)*", row[3]), row[0]


def test_every_path_it_names_exists() -> None:
    rooms = ("tests/", "torchyard/", "service/", "worker/", "deploy/", "docs/")
    named = {path for path in re.findall(r"[`(]([\w./-]+)[`)#]", PAGE) if path.startswith(rooms)}
    assert named
    assert not [path for path in named if not (ROOT / path).exists()]
