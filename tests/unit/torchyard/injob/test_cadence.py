"""How often checkpoints are taken that nobody has asked for."""

from pathlib import Path

import pytest

from torchyard.injob import cadence, layout, place


@pytest.mark.parametrize(
    ("stall", "write", "seconds"),
    [(0.0, 0.0, cadence.FIRST_S), (0.1, 1.0, cadence.FIRST_S), (1.0, 4.5, 500.0), (6.0, 27.0, 3000.0)],
)
def test_it_costs_a_fiftieth_at_most(stall: float, write: float, seconds: float) -> None:
    assert cadence.interval(stall, write) == pytest.approx(seconds)


def test_the_first_is_due_soon_and_the_next_by_what_it_cost() -> None:
    chosen = cadence.Cadence()
    assert not chosen.due(119)
    assert chosen.due(120)
    chosen.measured(1.0, 4.5, 1 << 20)
    assert not chosen.due(499)
    assert chosen.due(500)


def test_it_leaves_free_what_must_stay_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = place.CurrentAttempt(str(tmp_path), None)
    chosen = cadence.Cadence()
    monkeypatch.setenv(layout.DISK_FLOOR, "0")
    assert chosen.lacks_room(attempt) is None
    chosen.measured(0.0, 0.0, 1 << 60)
    assert "takes twice" in (chosen.lacks_room(attempt) or "")
    chosen.measured(0.0, 0.0, 0)
    monkeypatch.setenv(layout.DISK_FLOOR, str(1 << 60))
    assert "stay free" in (chosen.lacks_room(attempt) or "")
