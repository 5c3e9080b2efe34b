"""Writes the tables of states in docs/architecture.md from torchyard/states.py; `--check` only compares."""

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from torchyard import states

State = TypeVar("State", bound=StrEnum)
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


def table(members: type[State], transitions: Mapping[State, frozenset[State]]) -> str:
    """A Markdown table of moves, in the order of the enumeration."""
    rows = ["| from | to |", "|---|---|"]
    for state in members:
        order = [target.upper() for target in members if target in transitions[state]]
        rows.append(f"| {state.upper()} | {', '.join(order) or 'none'} |")
    return "\n".join(rows)


def render(page: str) -> str:
    """The page with both tables made anew."""
    tables = {
        "job": table(states.JobState, states.JOB_TRANSITIONS),
        "attempt": table(states.AttemptState, states.ATTEMPT_TRANSITIONS),
    }
    for name, rows in tables.items():
        begin, end = f"<!-- {name} states: begin -->", f"<!-- {name} states: end -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{rows}\n{end}{rest.split(end)[1]}"
    return page


if __name__ == "__main__":
    text = PAGE.read_text()
    if "--check" in sys.argv[1:]:
        sys.exit(text != render(text) and "docs/architecture.md is stale: run python scripts/state_tables.py")
    PAGE.write_text(render(text))
