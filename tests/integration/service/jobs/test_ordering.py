"""Lists of jobs by a column, page by page, on both databases."""

import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, select, text, update

from service.db.engine import Database
from service.db.models import Attempt, Job, MetricSeries
from service.errors import ProblemError
from service.jobs import find, ordering
from tests.support import box
from tests.support.submissions import ADA
from torchyard.ids import new_id
from torchyard.states import JobState

NOW = 10_000
BY_COLUMN = [f"{sign}{column}" for sign in ("", "-") for column in ("name", "user", "priority", "duration")]
AT_LAST = (JobState.SUCCEEDED, JobState.FAILED)
BY_METRIC = [f"{sign}{which}:loss" for sign in ("", "-") for which in ("metric", "min", "max")]


@pytest.fixture
def jobs(db: Database) -> Database:
    """Twelve jobs, many of which are alike in what they are ordered by; some wait again, and some run again."""
    box.add_people(db)
    box.add_user(db, "bob")
    chance = random.Random(4)
    with db.write() as tx:
        for number in range(12):
            job = box.insert_job(tx, name=chance.choice(["resnet", "BERT", "bert", "unet"]))
            started = chance.choice([None, 100, 2_000])
            state = JobState.QUEUED if started is None else chance.choice([*AT_LAST, JobState.QUEUED, JobState.RUNNING])
            values = {"priority": chance.randrange(3), "started_us": started, "state": state}
            values |= {"ended_us": 3_000 if state in AT_LAST else None, "attempt": 9}
            values |= {"ran_us": 0 if started is None else chance.choice([0, 900])}
            begun = chance.choice([None, 2_500]) if state is JobState.RUNNING else 100
            row = {"id": new_id("att"), "job_id": job, "number": 9, "state": "running", "created_us": 1}
            tx.execute(insert(Attempt).values(started_us=begun, **row))
            tx.execute(update(Job).where(Job.id == job).values(user_id=f"user-{('ada', 'bob')[number % 2]}", **values))
    return db


@pytest.fixture
def measured(jobs: Database) -> Database:
    """The same with a metric of most: newest values of several attempts, ranks and trackers, some of them alike."""
    chance = random.Random(6)
    with jobs.write() as tx:
        tx.execute(update(Job).values(state=JobState.QUEUED, attempt=0))
        for job, number in tx.execute(select(Job.id, Job.number)).all():
            for attempt in range(1, chance.randrange(4)):
                row = {"id": new_id("att"), "job_id": job, "number": attempt, "state": "exited", "created_us": 1}
                tx.execute(insert(Attempt), [row])
                last = chance.choice([None, 0.25, 0.5, 0.75])
                ends = {"min_value": -0.5, "max_value": chance.choice([1.0, 2.0])} if last else {}
                of = {"job_id": job, "number": number, "attempt_id": row["id"], "attempt": attempt, "name": "loss"}
                states = [JobState.QUEUED, JobState.RUNNING, JobState.FAILED]
                tx.execute(update(Job).where(Job.id == job).values(attempt=attempt, state=chance.choice(states)))
                for stream, rank, value in (("own", 0, last), ("tracker", 0, last), ("other", 1, 9.0)):
                    tx.execute(insert(MetricSeries).values(**of, stream=stream, rank=rank, last_value=value, **ends))
    return jobs


def pages(tx: Connection, text: str, limit: int, filters: find.Filters) -> list[int]:
    found: list[int] = []
    order, cursor = ordering.parse(text), None
    for later in range(20):
        span = find.Span(limit=limit, cursor=cursor)
        # What runs gets older while one turns the pages.
        rows, cursor = ordering.page(tx, ADA, filters, span, order, NOW + 500 * later)
        found += [row.number for row in rows]
        if cursor is None:
            return found
    raise AssertionError("the pages have no end")


def expected(tx: Connection, order: str) -> list[int]:
    columns = (
        Job.number,
        Job.name,
        Job.user_id,
        Job.priority,
        Job.started_us,
        Job.ran_us,
        Job.state,
        Attempt.started_us,
    )

    def key(row: Any) -> Any:
        _, name, user, priority, started, ran, state, begun = row
        runs = 0 if state != JobState.RUNNING or begun is None else NOW - begun
        duration = -1 if started is None else ran + runs
        keys: dict[str, Any] = {"name": name.lower(), "user": user, "priority": priority, "duration": duration}
        return keys[order.removeprefix("-")]

    last = (Attempt.job_id == Job.id) & (Attempt.number == Job.attempt)
    newest = sorted(tx.execute(select(*columns).join(Attempt, last)), key=lambda row: -row[0])
    values = sorted({key(row) for row in newest}, reverse=order.startswith("-"))
    return [row[0] for value in values for row in newest if key(row) == value]


@pytest.mark.parametrize("order", BY_COLUMN)
def test_pages_follow_each_other_in_the_order_of_a_column(jobs: Database, order: str) -> None:
    with jobs.read() as tx:
        whole = expected(tx, order)
        for limit in (1, 5, 12):
            assert pages(tx, order, limit, find.Filters()) == whole
        rows, _ = ordering.page(tx, ADA, find.Filters(), find.Span(limit=3, offset=4), ordering.parse(order), NOW)
        assert [row.number for row in rows] == whole[4:7]


def expected_by_metric(tx: Connection, order: str) -> list[int]:
    which = {"metric": "last_value", "min": "min_value", "max": "max_value"}[order.removeprefix("-").split(":")[0]]
    query = select(MetricSeries.number, getattr(MetricSeries, which)).where(MetricSeries.rank == 0)
    values = dict(tx.execute(query.order_by(MetricSeries.attempt)).all())  # type: ignore[arg-type]
    newest = list(tx.scalars(select(Job.number).order_by(Job.number.desc())))
    has = [number for number in newest if values.get(number) is not None]
    ordered = sorted(has, key=lambda number: values[number] * (-1 if order.startswith("-") else 1))
    return [*ordered, *(number for number in newest if number not in has)]


@pytest.mark.parametrize("order", BY_METRIC)
def test_jobs_without_the_metric_come_last(measured: Database, order: str) -> None:
    with measured.read() as tx:
        whole = expected_by_metric(tx, order)
        for limit in (1, 5, 12):
            assert pages(tx, order, limit, find.Filters()) == whole
        for offset in range(12):
            span = find.Span(limit=3, offset=offset)
            rows, _ = ordering.page(tx, ADA, find.Filters(), span, ordering.parse(order), NOW)
            assert [row.number for row in rows] == whole[offset : offset + 3]
        bobs = set(tx.scalars(select(Job.number).where(Job.user_id == "user-bob")))
        assert pages(tx, order, 2, find.Filters(user="bob")) == [each for each in whole if each in bobs]
        assert pages(tx, "max:accuracy", 5, find.Filters()) == sorted(whole, reverse=True)


@pytest.mark.parametrize("few", [0, 5_000])
@pytest.mark.parametrize("order", BY_METRIC)
def test_jobs_that_wait_have_the_order_of_all(
    measured: Database, order: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether those that have had an attempt are few or not."""
    with measured.read() as tx:
        whole = expected_by_metric(tx, order)
        state_of = dict(tx.execute(select(Job.number, Job.state)).all())  # type: ignore[arg-type]
        assert len(set(state_of.values())) == 3
        monkeypatch.setattr(ordering.find, "narrowed", lambda _tx, _caller, filters: filters)
        monkeypatch.setattr(ordering.find, "FEW", few)
        for states in ([JobState.QUEUED], [JobState.QUEUED, JobState.RUNNING], [JobState.QUEUED, JobState.FAILED]):
            passing = [number for number in whole if state_of[number] in states]
            for limit in (1, 5, 12):
                assert pages(tx, order, limit, find.Filters(state=states)) == passing


@pytest.mark.parametrize("order", ["-priority", "name", "-duration"])
def test_filters_hold_in_such_an_order(jobs: Database, order: str) -> None:
    with jobs.read() as tx:
        whole = expected(tx, order)
        bobs = set(tx.scalars(select(Job.number).where(Job.user_id == "user-bob")))
        assert pages(tx, order, 2, find.Filters(user="bob")) == [each for each in whole if each in bobs]
        bert = set(tx.scalars(select(Job.number).where(Job.name.icontains("bert"))))
        assert pages(tx, order, 2, find.Filters(q="bert")) == [each for each in whole if each in bert]


@pytest.mark.parametrize("order", ["priority", "max:loss"])
@pytest.mark.parametrize("cursor", ["7", "", "W10=", "WyJhIiwxLDFd", "WzEsMSwwXXg=", "W3RydWUsMSwxXQ==", "é"])
def test_a_cursor_of_another_list_is_refused(jobs: Database, order: str, cursor: str) -> None:
    span = find.Span(limit=1, cursor=cursor)
    with jobs.read() as tx, pytest.raises(ProblemError) as refused:
        ordering.page(tx, ADA, find.Filters(), span, ordering.parse(order), NOW)
    assert refused.value.errors[0].field == "cursor"


@pytest.mark.parametrize(
    ("order", "states", "indexes"),
    [
        ("name", [], ["ix_jobs_lower_name"]),
        ("-duration", [], ["ix_jobs_ran_us"]),
        ("-max:loss", [], ["ix_metric_series_name_max", "ix_metric_series_name_number"]),
        ("-max:loss", [JobState.QUEUED], ["COVERING INDEX ix_jobs_waits_again"]),
    ],
)
def test_indexes_have_the_order(
    migrated_file: Path,
    tmp_path: Path,
    order: str,
    states: list[JobState],
    indexes: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By SQLite, which chooses without regard to how much there is: PostgreSQL sorts what is little."""
    url = f"sqlite:///{shutil.copy(migrated_file, tmp_path)}"
    db, asked = Database(url), list[tuple[str, Any]]()
    event.listen(db.engine, "before_cursor_execute", lambda *args: asked.append((args[2], args[3])))
    monkeypatch.setattr(ordering.find, "narrowed", lambda _tx, _caller, filters: filters)
    with db.read() as tx:
        ordering.page(tx, ADA, find.Filters(state=states), find.Span(limit=3), ordering.parse(order), NOW)
        lists = [each for each in asked if each[0].startswith("SELECT")]
        plans = [row[3] for sql, given in lists for row in tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", given)]
    db.dispose()
    for index in indexes:
        assert any(index in step for step in plans), plans


def test_a_page_by_a_metric_reads_the_index_of_its_values_as_far_as_it_is_full(db: Database) -> None:
    """Whatever the database expects of how many series a list shows."""
    box.add_people(db)
    with db.write() as tx:
        first = box.insert_job(tx)
        job = dict(tx.execute(select(Job.__table__).where(Job.id == first)).one()._mapping)
        own = {"job_id": first, "attempt_id": "att", "attempt": 1, "stream": "own", "rank": 0, "name": "loss"}
        tx.execute(insert(Attempt).values(id="att", job_id=first, number=1, state="exited", created_us=1))
        numbers = range(2, 3_000)
        ids = {number: f"job-{number}" for number in numbers}
        tx.execute(insert(Job), [job | {"id": ids[number], "number": number} for number in numbers])
        attempts = [
            {"id": f"att-{number}", "job_id": ids[number], "number": 1, "state": "exited"} for number in numbers
        ]
        tx.execute(insert(Attempt), [attempt | {"created_us": 1} for attempt in attempts])
        of = [{"job_id": ids[number], "attempt_id": f"att-{number}", "number": number} for number in numbers]
        tx.execute(insert(MetricSeries), [own | each | {"max_value": float(each["number"])} for each in of])
        if not db.is_sqlite:
            tx.execute(text("ANALYZE"))
    asked = list[tuple[str, Any]]()
    event.listen(db.engine, "before_cursor_execute", lambda *args: asked.append((args[2], args[3])))
    with db.read() as tx:
        rows, _ = ordering.page(tx, ADA, find.Filters(), find.Span(limit=3), ordering.parse("-max:loss"), NOW)
        (query,) = (each for each in asked if "metric_series.max_value AS value" in each[0])
        explain = "EXPLAIN QUERY PLAN" if db.is_sqlite else "EXPLAIN"
        plan = " ".join(str(row[-1]) for row in tx.exec_driver_sql(f"{explain} {query[0]}", query[1]))
    assert [row.number for row in rows] == [2_999, 2_998, 2_997]
    assert "ix_metric_series_name_max" in plan
    assert not re.search("Sort|FOR ORDER BY|Hash", plan), plan
