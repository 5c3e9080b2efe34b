"""The comparison's arithmetic; the trainings themselves are timed nowhere in the tests."""

import csv
import io
from typing import Any

import pytest

from torchyard.recipe import Recipe
from trainer.bench import plan, table
from trainer.bench.published import PUBLISHED


def result(seconds: list[float], sent: list[int]) -> dict[str, Any]:
    return {"seconds": seconds, "samples": [1000] * len(seconds), "bytes_sent": sent}


def test_counts_are_those_of_the_box() -> None:
    assert [plan.counts(devices) for devices in (1, 2, 5, 8, 16)] == [
        [1],
        [1, 2],
        [1, 2, 4],
        [1, 2, 4, 8],
        [1, 2, 4, 8],
    ]


def test_every_case_has_the_same_effective_batch() -> None:
    cases = plan.cases(Recipe(), plan.STRATEGIES, [1, 2, 4], 96)
    assert (cases[0].strategy, cases[0].devices, cases[0].processes) == ("single", 1, 1)
    assert {case.recipe.global_batch_size for case in cases} == {96}
    processes = {(case.strategy, case.devices): case.processes for case in cases}
    assert processes[("dp", 4)] == 1
    assert processes[("parameter_server", 2)] == 3
    assert processes[("ddp", 4)] == processes[("ring", 4)] == processes[("broadcast", 4)] == 4
    assert len(cases) == 1 + 2 * len(plan.STRATEGIES)


def test_speed_up_is_against_one_process_by_the_median() -> None:
    one, two = plan.cases(Recipe(), ["ddp"], [2], 64)
    rows = table.rows([(one, result([2.0, 1.0, 9.0], [0])), (two, result([1.0, 1.25, 7.0], [30, 50]))])
    assert rows[0].samples_per_second == 500
    assert (rows[1].speed_up, rows[1].efficiency) == pytest.approx((1.6, 0.8))
    assert (rows[1].slowest, rows[1].fastest) == pytest.approx((1000 / 7, 1000))
    assert rows[1].bytes_per_rank == 50
    assert not any(row.remark for row in rows)


def test_more_than_linear_is_flagged() -> None:
    one, two = plan.cases(Recipe(), ["ddp"], [2], 64)
    rows = table.rows([(one, result([4.7], [0])), (two, result([1.0], [8]))])
    assert rows[1].efficiency == pytest.approx(2.35)
    assert "above 100 %" in rows[1].remark
    (read,) = list(csv.DictReader(io.StringIO(table.as_csv(rows))))[1:]
    assert (read["strategy"], read["devices"], float(read["speed_up"])) == ("ddp", "2", pytest.approx(4.7))
    assert "above 100 %" in read["remark"]


def test_what_is_published_but_not_credible_says_so() -> None:
    for each in PUBLISHED:
        assert ("not credible" in each.remark) == (each.speed_up > each.devices)
