"""Lists of jobs by a column, page by page, on both databases."""

import random
from typing import Any, get_args

import pytest
from sqlalchemy import Connection, select, update

from service.db.engine import Database
from service.db.models import Job
from service.errors import ProblemError
from service.jobs import find, ordering
from tests.support import box
from tests.support.submissions import ADA

NOW = 10_000


@pytest.fixture
def jobs(db: Database) -> Database:
    """Twelve jobs, many of which are alike in what they are ordered by."""
    box.add_people(db)
    box.add_user(db, "bob")
    chance = random.Random(4)
    with db.write() as tx:
        for number in range(12):
            job = box.insert_job(tx, name=chance.choice(["resnet", "BERT", "bert", "unet"]))
            started = chance.choice([None, 100, 2_000])
            ended = None if started is None else chance.choice([None, 3_000])
            values = {"priority": chance.randrange(3), "started_us": started, "ended_us": ended}
            tx.execute(update(Job).where(Job.id == job).values(user_id=f"user-{('ada', 'bob')[number % 2]}", **values))
    return db


def pages(tx: Connection, order: ordering.Order, limit: int, filters: find.Filters) -> list[int]:
    found: list[int] = []
    cursor = None
    for later in range(20):
        span = find.Span(limit=limit, cursor=cursor)
        # What runs gets older while one turns the pages.
        rows, cursor = ordering.page(tx, ADA, filters, span, order, NOW + 500 * later)
        found += [row.number for row in rows]
        if cursor is None:
            return found
    raise AssertionError("the pages have no end")


def expected(tx: Connection, order: ordering.Order) -> list[int]:
    columns = (Job.number, Job.name, Job.user_id, Job.priority, Job.started_us, Job.ended_us)

    def key(row: Any) -> Any:
        _, name, user, priority, started, ended = row
        duration = -1 if started is None else (NOW if ended is None else ended) - started
        keys: dict[str, Any] = {"name": name.lower(), "user": user, "priority": priority, "duration": duration}
        return keys[order.removeprefix("-")]

    newest = sorted(tx.execute(select(*columns)), key=lambda row: -row[0])
    values = sorted({key(row) for row in newest}, reverse=order.startswith("-"))
    return [row[0] for value in values for row in newest if key(row) == value]


@pytest.mark.parametrize("order", get_args(ordering.Order))
def test_pages_follow_each_other_in_the_order_of_a_column(jobs: Database, order: ordering.Order) -> None:
    with jobs.read() as tx:
        whole = expected(tx, order)
        for limit in (1, 5, 12):
            assert pages(tx, order, limit, find.Filters()) == whole
        rows, _ = ordering.page(tx, ADA, find.Filters(), find.Span(limit=3, offset=4), order, NOW)
        assert [row.number for row in rows] == whole[4:7]


def test_filters_hold_in_such_an_order(jobs: Database) -> None:
    with jobs.read() as tx:
        whole = expected(tx, "-priority")
        bobs = set(tx.scalars(select(Job.number).where(Job.user_id == "user-bob")))
        assert pages(tx, "-priority", 2, find.Filters(user="bob")) == [each for each in whole if each in bobs]
        bert = set(tx.scalars(select(Job.number).where(Job.name.icontains("bert"))))
        assert pages(tx, "-priority", 2, find.Filters(q="bert")) == [each for each in whole if each in bert]


@pytest.mark.parametrize("cursor", ["7", "", "W10=", "WyJhIiwxLDFd", "WzEsMSwwXXg=", "é"])
def test_a_cursor_of_another_list_is_refused(jobs: Database, cursor: str) -> None:
    with jobs.read() as tx, pytest.raises(ProblemError) as refused:
        ordering.page(tx, ADA, find.Filters(), find.Span(limit=1, cursor=cursor), "priority", NOW)
    assert refused.value.errors[0].field == "cursor"
