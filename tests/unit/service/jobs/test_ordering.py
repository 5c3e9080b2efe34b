"""Orders of a list as an address writes them."""

import pytest

from service.errors import ProblemError
from service.jobs.ordering import ListOrder, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name", ListOrder(column="name")),
        ("-duration", ListOrder(column="duration", falling=True)),
        ("metric:val/loss", ListOrder(metric="val/loss")),
        ("-max:val/accuracy", ListOrder(metric="val/accuracy", which="max", falling=True)),
        ("min:a:b -c", ListOrder(metric="a:b -c", which="min")),
    ],
)
def test_an_order_is_read(text: str, expected: ListOrder) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["", "-", "colour", "--name", "name:x", "max:", "last:loss"])
def test_another_is_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(ProblemError) as refused:
        parse(text)
    (error,) = refused.value.errors
    assert error.field == "order"
    assert "duration, metric:NAME, min:NAME, max:NAME" in error.message
