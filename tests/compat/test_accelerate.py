"""`attach` on the real Accelerate: a loader that it prepared goes on exactly, or it is said why not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.compat.by_hand import ByHand
from worker.launching.environment import install_injob

SCRIPT = Path(__file__).with_name("accelerated.py")

#: How a run ends that is never stopped, and those that are stopped and go on.
Ends = list[dict[str, Any]]


@pytest.fixture(scope="module")
def ends(by_hand: ByHand, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ends]:
    """The ends of all runs, by what their data are."""
    folder = tmp_path_factory.mktemp("accelerated")
    words = ["plain=1,3,7,12,20", "noisy=10"]
    printed = by_hand(folder, SCRIPT, *words, load=["accelerate"], path=[install_injob(folder)])
    found: dict[str, Ends] = json.loads(printed.splitlines()[-1])
    return found


def test_a_prepared_loader_goes_on_exactly(ends: dict[str, Ends]) -> None:
    whole, *resumed = ends["plain"]
    assert (whole["step"], whole["inexact"]) == (21, None)
    assert resumed == [whole] * 5


def test_data_that_draws_while_it_is_read_ahead_is_told_of(ends: dict[str, Ends]) -> None:
    whole, resumed = ends["noisy"]
    assert resumed["step"] == whole["step"] == 21
    assert "reads one batch ahead" in resumed["inexact"]
