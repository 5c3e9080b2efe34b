"""The table of peers."""

import io

from rich.console import Console

from benchmarks.peers import outcome
from benchmarks.peers.outcome import Measured


def both() -> list[Measured]:
    return [
        Measured(name=outcome.REFERENCE, version="1", submit_ms=[4.0, 2.0, 9.0], drain_per_s=[10.0], step_ms=[1500.0]),
        Measured(
            name="other", version="2", setting="tuned", submit_ms=[2.0], drain_per_s=[40.0], reason="failed: late"
        ),
    ]


def test_rows_have_medians_counts_and_ratios_to_ours() -> None:
    ours, other = outcome.rows(both())
    assert (ours["submit_ms"], ours["counts"]["submit_ms"], ours["ratios"]["submit_ms"]) == (4.0, 3, 1.0)
    assert (other["ratios"]["submit_ms"], other["ratios"]["drain_per_s"]) == (0.5, 4.0)
    assert (other["step_ms"], other["ratios"]["step_ms"], other["counts"]["step_ms"]) == (None, None, 0)


def test_without_ours_there_are_no_ratios() -> None:
    (other,) = outcome.rows(both()[1:])
    assert set(other["ratios"].values()) == {None}


def test_printed_and_kept_tables_say_the_same() -> None:
    rows = outcome.rows([*both(), Measured(name="absent", reason="not installed: as root")])
    kept = outcome.markdown(rows)
    assert "| other | 2 | 2 (0.5 x) |  | 40 (4 x) |  | tuned; failed: late |" in kept
    assert "| absent |  |  |  |  |  | not installed: as root |" in kept
    paper = io.StringIO()
    console = Console(width=220, file=paper)
    console.print(outcome.table(rows))
    printed = paper.getvalue()
    for cell in ("2 (0.5 x)", "40 (4 x)", "1,500 (1 x)", "tuned; failed: late", "not installed: as root"):
        assert cell in printed
