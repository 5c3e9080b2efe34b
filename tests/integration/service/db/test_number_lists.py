"""Conditions on lists of numbers."""

import pytest
from sqlalchemy import literal, select, union_all

from service.db.engine import Database
from service.db.number_lists import one_of


@pytest.mark.parametrize(("numbers", "found"), [([2, 3, 2, 9], [2, 3]), ([], []), (range(3, 6_000), [3])])
def test_rows_with_one_of_the_numbers_pass_each_once(db: Database, numbers: list[int], found: list[int]) -> None:
    rows = union_all(*(select(literal(number).label("number")) for number in (1, 2, 3))).subquery()
    query = select(rows.c.number).where(rows.c.number > 0, one_of(rows.c.number, numbers)).order_by(rows.c.number)
    with db.read() as tx:
        assert list(tx.scalars(query)) == found
