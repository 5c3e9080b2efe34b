"""Orders of a list as an address writes them."""

import base64

import pytest

from service.errors import ProblemError
from service.jobs import ordering
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


@pytest.mark.parametrize(("order", "value"), [("duration", -7_000_000), ("-metric:loss", -0.5), ("name", "resnet")])
def test_what_a_list_has_answered_is_read_again(order: str, value: str | float) -> None:
    cursor = ordering._Cursor(value, 7, 1_700_000_000_000_000)
    assert ordering._read(ordering._write(cursor), parse(order)) == cursor


@pytest.mark.parametrize("text", ["[" * 100_000, '["\\ud800", 1, 1]'], ids=["deep", "surrogate"])
def test_a_cursor_of_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ProblemError):
        ordering._read(base64.urlsafe_b64encode(text.encode()).decode(), parse("name"))
