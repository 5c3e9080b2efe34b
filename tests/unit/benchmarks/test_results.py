"""From figures to ``results.json``."""

from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.figure import Figure, Summary, summarise


def figure(value: float, **fields: object) -> Figure:
    return Figure(**{"name": "start", "value": value, "unit": "ms", **fields})  # type: ignore[arg-type]


def test_runs_come_to_a_median_and_a_range() -> None:
    measured = [
        figure(value, target="< 5", met=value < 5, baseline=2.0, against="a spawn") for value in (9.0, 1.0, 4.0)
    ]
    (row,) = summarise(measured)
    assert (row.median, row.minimum, row.maximum, row.runs) == (4.0, 1.0, 9.0, 3)
    assert row.met is True
    assert (row.baseline, row.against) == (2.0, "a spawn")


def test_without_a_target_none_is_met_or_missed() -> None:
    rows = list(summarise([figure(1.0), figure(2.0, name="drain", target="< 1", met=False)]))
    assert [(row.name, row.met) for row in rows] == [("start", None), ("drain", False)]


def test_a_section_replaces_itself_and_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    rows = [Summary(name="a", unit="ms", median=1.0, minimum=1.0, maximum=1.0, runs=1)]
    results.record("first", rows, path)
    results.record("second", rows, path)
    results.record("first", [], path)
    found = results.load(path)
    assert found["first"]["figures"] == []
    (kept,) = found["second"]["figures"]
    assert (kept["name"], kept["median"], kept["met"]) == ("a", 1.0, None)
    assert {"cpu", "cores", "memory_gb", "python", "torch", "date", "load"} == set(found["second"]["machine"])
    assert [each.name for each in tmp_path.iterdir()] == ["results.json"]


def test_a_part_of_a_section_is_printed_and_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = Summary(
        name="one", unit="ms", median=3.0, minimum=1.0, maximum=1234.0, runs=3, target="< 2", met=False,
        baseline=1.5, against="bare",
    )  # fmt: skip
    results.report("part", [row], whole=False, path=tmp_path / "results.json")
    told = capsys.readouterr().out
    for shown in ("one", "3 ms", "1 to 1,234", "< 2", "NO", "2.00 x bare"):
        assert shown in told
    assert not list(tmp_path.iterdir())
