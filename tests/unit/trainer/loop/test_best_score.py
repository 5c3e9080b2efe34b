import math

import pytest

from torchyard.injob import layout
from trainer.loop.best_score import BestScore


def of(keep_best: str, job: str = "job-1") -> BestScore:
    return BestScore({layout.KEEP_BEST: keep_best, layout.JOB_ID: job})


@pytest.mark.parametrize(
    ("keep_best", "values", "expected"),
    [
        ("max val/accuracy", [0.5, 0.4, 0.5, 0.6], [True, False, False, True]),
        ("min val/accuracy", [0.5, 0.6, math.nan, 0.4], [True, False, False, True]),
        ("max val/accuracy", [math.inf, 0.1], [False, True]),
    ],
)
def test_each_evaluation_that_beats_all_before(keep_best: str, values: list[float], expected: list[bool]) -> None:
    best = of(keep_best)
    assert [best.improved({"val/accuracy": value}) for value in values] == expected


def test_nothing_is_the_best_where_nobody_asked() -> None:
    best = BestScore({})
    assert not best.improved({"val/accuracy": 1.0})
    assert not best.lacks({"val/accuracy": 1.0})


def test_a_metric_that_no_evaluation_has() -> None:
    best = of("max accuracy")
    assert best.lacks({"val/accuracy": 1.0})
    assert not best.lacks({})  # an epoch without an evaluation
    assert not of("max val/accuracy").lacks({"val/accuracy": 1.0})


def test_a_resumed_job_goes_on_and_another_job_begins_anew() -> None:
    before = of("max val/accuracy")
    before.improved({"val/accuracy": 0.9})
    resumed, other, changed = of("max val/accuracy"), of("max val/accuracy", "job-2"), of("min val/accuracy")
    for best in (resumed, other, changed):
        best.restore(before.state)
    assert not resumed.improved({"val/accuracy": 0.8})
    assert other.improved({"val/accuracy": 0.8})
    assert changed.improved({"val/accuracy": 0.8})
