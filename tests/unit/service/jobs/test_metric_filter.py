"""Comparisons of metrics as people write them."""

import pytest

from service.errors import ProblemError
from service.jobs.metric_filter import MetricFilter, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("val/accuracy>0.9", MetricFilter("val/accuracy", ">", 0.9)),
        (" val loss <= 1e-3 ", MetricFilter("val loss", "<=", 0.001)),
        ("loss!=-2", MetricFilter("loss", "!=", -2.0)),
        ("max:val/accuracy>0.9", MetricFilter("val/accuracy", ">", 0.9, "max")),
        (" min: val loss < 0.3", MetricFilter("val loss", "<", 0.3, "min")),
        ("maximum:loss>1", MetricFilter("maximum:loss", ">", 1.0)),
    ],
)
def test_a_comparison_is_read(text: str, expected: MetricFilter) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text", ["", "loss", "loss>", ">1", "loss>high", "loss>1>2", "loss=>1", "max:>1", "a<nan", "min:a>-inf"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ProblemError, match="metric") as refused:
        parse(text)
    assert "val/accuracy>0.9" in refused.value.errors[0].message
