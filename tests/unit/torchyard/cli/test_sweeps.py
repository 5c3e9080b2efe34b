"""How a sweep's standing reads, and what its end exits with."""

from datetime import UTC, datetime
from typing import Any

import pytest

from torchyard.api import Group
from torchyard.cli import sweeps


def group(**changes: Any) -> Group:
    fields: dict[str, Any] = {
        "id": "grp-1",
        "number": 1,
        "name": "lrs",
        "user": "ada",
        "project": "default",
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
        "ended_at": None,
        "size": 4,
        "sweep": {"parameters": {"lr": [1, 2, 3, 4]}},
        "paused": None,
        "held": 0,
        "states": {"queued": 4},
        "stopped_early": 0,
        "metric": None,
        "mode": None,
        "best": None,
    }
    return Group.model_validate(fields | changes)


@pytest.mark.parametrize(
    ("states", "early", "code"),
    [
        ({"succeeded": 4}, 0, 0),
        ({"succeeded": 2, "cancelled": 2}, 2, 0),
        ({"succeeded": 2, "cancelled": 2}, 1, 130),
        ({"succeeded": 2, "cancelled": 1, "failed": 1}, 1, 1),
    ],
)
def test_the_exit_code_of_a_sweep(states: dict[str, int], early: int, code: int) -> None:
    assert sweeps.exit_code(group(states=states, stopped_early=early)) == code


def test_the_standing_counts_states_and_says_what_holds_the_sweep_up() -> None:
    shown = sweeps.standing(group(states={"queued": 3, "cancelled": 1}, stopped_early=1, held=2, paused="why"))
    assert str(shown) == "3 queued, 1 cancelled, 1 of them stopped early, 2 held, paused"
