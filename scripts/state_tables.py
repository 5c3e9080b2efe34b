"""Writes the tables of states in docs/architecture.md from torchyard/states.py; `--check` only compares."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from scripts import generated
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
        page = generated.between(page, f"{name} states", rows)
    return page


if __name__ == "__main__":
    generated.write_or_check(PAGE, render(PAGE.read_text()), "state_tables")
