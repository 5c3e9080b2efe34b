"""Pictures of figures."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import plots
from benchmarks.peers import outcome


def figure(median: float, target: str, **fields: object) -> dict[str, Any]:
    return {"name": f"figure of {median:g}", "median": median, "target": target, "baseline": None, **fields}


@pytest.mark.parametrize(
    ("median", "target", "baseline", "better"),
    [
        (50.0, "< 150", None, 3.0),
        (30.0, ">= 15", None, 2.0),
        (100_000.0, ">= 50,000", None, 2.0),
        (2.0, "<= 0.10 x", 40.0, 2.0),
        (4.0, "", None, None),
        (-1.0, "< 2", None, None),
    ],
)
def test_margin_is_how_many_times_better(
    median: float, target: str, baseline: float | None, better: float | None
) -> None:
    assert plots.margin(figure(median, target, baseline=baseline)) == (better and pytest.approx(better))


def test_targets_are_drawn_small_and_always_alike(tmp_path: Path) -> None:
    sections = {"all": {"figures": [figure(float(value), "< 10") for value in range(1, 21)] + [figure(7.5, "")]}}
    for name in ("a.svg", "b.svg"):
        plots.draw_targets(sections, tmp_path / name)
    drawn = (tmp_path / "a.svg").read_bytes()
    assert drawn == (tmp_path / "b.svg").read_bytes()
    assert len(drawn) < 20_000
    assert b"figure of 20" in drawn
    assert b"figure of 7.5" not in drawn


def test_peers_are_drawn_with_what_was_measured(tmp_path: Path) -> None:
    ours = outcome.Measured(name=outcome.REFERENCE, submit_ms=[1.0], start_ms=[2.0], drain_per_s=[3.0], step_ms=[4.0])
    rows = outcome.rows([ours, outcome.Measured(name="other", submit_ms=[0.01234]), outcome.Measured(name="none")])
    plots.draw_peers(rows, tmp_path / "peers.svg")
    drawn = (tmp_path / "peers.svg").read_text()
    assert all(column.title in drawn for column in outcome.COLUMNS)
    assert len(drawn) < 20_000
    assert drawn.count(">other<") == 1
    assert "0.012<" in drawn
    assert ">none<" not in drawn


def test_the_table_of_the_page_is_replaced() -> None:
    machine = {"cpu": "some", "cores": 2, "memory_gb": 8, "python": "3", "torch": "2", "date": "2026-01-01", "load": 1}
    rows = outcome.rows([outcome.Measured(name="other", submit_ms=[8.0])])
    peers = {"machine": machine, "rounds": 1, "load": [0.5, 2.0], "rows": rows}
    page = f"before\n{plots.BEGIN}\nold\n{plots.END}\nafter\n"
    once = plots.with_table(page, peers)
    assert once.startswith(f"before\n{plots.BEGIN}\nsome, 2 cores, 8 GB")
    assert once.endswith(f"|\n{plots.END}\nafter\n")
    assert "| other |  | 8 |" in once
    assert "0.5 to 2; rounds: 1" in once
    assert "old" not in once
    assert plots.with_table(once, peers) == once


def test_the_page_shows_each_figure_once() -> None:
    page = f"before\n{plots.TARGETS_BEGIN}\n{plots.TARGETS_END}\nafter\n"
    machine = {"cpu": "some", "cores": 2, "memory_gb": 8, "python": "3", "torch": "2", "date": "2026-01-01", "load": 1}
    sections = {
        "control plane": {
            "machine": machine,
            "figures": [figure(7.5, "< 10", unit="ms", minimum=7.5, maximum=7.5, runs=1, met=True)],
        }
    }
    once = plots.with_figures(page, sections)
    assert once.count("(images/benchmark-targets.svg)") == 1
    assert "### Control plane\n\nsome, 2 cores, 8 GB of memory" in once
    assert "| figure of 7.5 | 7.5 ms | 7.5 to 7.5 | 1 | < 10 | yes | |\n" in once
    assert plots.with_figures(once, sections) == once
    assert once.endswith(f"{plots.TARGETS_END}\nafter\n")


def test_the_page_has_a_place_for_both() -> None:
    page = plots.PAGE.read_text()
    assert all(page.count(mark) == 1 for mark in (plots.BEGIN, plots.END, plots.TARGETS_BEGIN, plots.TARGETS_END))
