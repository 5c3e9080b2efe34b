"""Telemetry in buckets that the database adds up, on both databases."""

from typing import Any

import pytest
from sqlalchemy import insert, select

from service.db.engine import Database
from service.db.models import Sample
from service.errors import ProblemError
from service.telemetry import samples
from service.telemetry.samples import SamplesQuery
from tests.support import box
from torchyard.ids import JobId

SECOND = 1_000_000


@pytest.fixture
def node(db: Database) -> str:
    """A node with a sample each second from 100 s on, whose value is its place; the GPU comes later."""
    box.add_node(db, "box")
    rows = [{"node": "box", "attempt_id": "", "time_us": (100 + n) * SECOND, "values": values(n)} for n in range(40)]
    with db.write() as tx:
        tx.execute(insert(Sample), rows)
    return "box"


def values(n: int) -> dict[str, float]:
    return {"cpu.percent": n} if n < 20 else {"cpu.percent": n, "gpu.0.power": 100.5}


def columns(series: Any, *names: str) -> list[list[float]]:
    return [getattr(series.buckets, name) for name in names]


def test_each_bucket_has_its_least_mean_and_most(db: Database, node: str) -> None:
    cpu, gpu = samples.of_node(db, node, SamplesQuery(max_points=1000, buckets=10)).series
    assert (cpu.name, gpu.name) == ("cpu.percent", "gpu.0.power")
    assert cpu.points == []
    assert columns(cpu, "count", "min", "mean", "max") == [
        [4] * 10,
        list(range(0, 40, 4)),
        [n + 1.5 for n in range(0, 40, 4)],
        list(range(3, 40, 4)),
    ]
    assert columns(cpu, "first_time", "last_step")[0][:2] == [100, 104]
    assert columns(gpu, "count", "mean") == [[4] * 5, [100.5] * 5]


def test_of_many_samples_evenly_chosen_ones_count(db: Database, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "SAMPLES_PER_BUCKET", 2)
    cpu, _ = samples.of_node(db, node, SamplesQuery(max_points=1000, buckets=10)).series
    assert columns(cpu, "count", "min", "max") == [[2] * 10, list(range(1, 40, 4)), list(range(3, 40, 4))]


def test_a_range_with_few_samples_has_every_one(db: Database, node: str) -> None:
    query = SamplesQuery(max_points=1000, buckets=10, start=105, end=114)
    (cpu,) = samples.of_node(db, node, query).series
    assert [value for _, _, value in cpu.points] == list(range(5, 15))
    assert not cpu.buckets
    assert samples.of_node(db, node, SamplesQuery(max_points=10, buckets=10, start=1e30)).series == []


def test_what_is_newer_follows_the_cursor(db: Database, node: str) -> None:
    whole = samples.of_node(db, node, SamplesQuery(max_points=1000, buckets=10))
    with db.write() as tx:
        row = {"node": "box", "attempt_id": "", "time_us": 200 * SECOND, "values": {"cpu.percent": 7}}
        tx.execute(insert(Sample), [row])
    newer = samples.of_node(db, node, SamplesQuery(max_points=1000, buckets=10, since=whole.cursor))
    assert [one.points for one in newer.series] == [[(200, 200.0, 7.0)]]


def test_a_cursor_has_no_range(db: Database) -> None:
    box.add_people(db)
    with pytest.raises(ProblemError, match="since"):
        samples.of_job(db, box.add_job(db), SamplesQuery(max_points=10, since="1", end=5))


def test_samples_of_a_wrong_clock_are_years_apart(db: Database, node: str) -> None:
    wrong = {"node": "box", "attempt_id": "", "time_us": 2**62, "values": {"cpu.percent": 1.0}}
    with db.write() as tx:
        tx.execute(insert(Sample).values(wrong))
    cpu, _ = samples.of_node(db, node, SamplesQuery(max_points=1000, buckets=10)).series
    assert columns(cpu, "count") == [[40, 1]]


@pytest.mark.parametrize("start", [-1e308, 1e308])
def test_a_moment_beyond_all_times_is_none_of_them(db: Database, node: str, start: float) -> None:
    found = samples.of_node(db, node, SamplesQuery(max_points=1000, start=start)).series
    assert len(found) == (2 if start < 0 else 0)


def test_samples_of_a_job_are_found_by_their_key(db: Database) -> None:
    rows = [{"node": f"n{n}", "attempt_id": "", "time_us": n, "values": {}} for n in range(500)]
    with db.write() as tx:
        tx.execute(insert(Sample), rows)
        if not db.is_sqlite:
            tx.exec_driver_sql("ANALYZE samples")
        asked = select(Sample.time_us).where(samples.samples_of(JobId("job-1")), Sample.time_us > 7)
        explain = "EXPLAIN QUERY PLAN" if db.is_sqlite else "EXPLAIN"
        query = asked.compile(tx, compile_kwargs={"literal_binds": True})
        plan = "\n".join(str(tuple(row)) for row in tx.exec_driver_sql(f"{explain} {query}"))
    assert "SCAN samples" not in plan, plan
    assert "Seq Scan on samples" not in plan, plan
