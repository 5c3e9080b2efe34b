"""Charts of long series, read from their rollups, show what charts of all points would."""

import math
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import delete, func, insert, select, update

from service.controllers.rollups import roll_up
from service.db.models import LONG_UNROLLED, MetricPoint, MetricRollup, MetricSeries
from service.telemetry import curves, metrics, rollups
from service.telemetry.blocks import Axis
from service.telemetry.metrics import MetricsQuery, MetricsRange
from service.telemetry.series import MetricsCursor
from tests.support.plane import Plane, Seeded, batch
from tests.support.wait import until
from torchyard import api
from torchyard.ids import JobId
from torchyard.numbers import NON_FINITE

#: (line, step, time in µs, value)
Point = tuple[int, int, int, float]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 4 x 8 points, and of 8 such rows, so that few points have rollups of both levels."""
    monkeypatch.setattr(rollups, "LEAST_POINTS", 4)
    monkeypatch.setattr(rollups, "BLOCKS", 8)


def store(plane: Plane, seeded: Seeded, points: Sequence[Point]) -> int:
    """Store a series as ingest would, and return its id."""
    with plane.ctx.db.write() as tx:
        series = (tx.scalar(select(func.max(MetricSeries.id))) or 0) + 1
        of = {"job_id": seeded.job, "attempt_id": seeded.attempt, "attempt": seeded.number, "rank": 0, "name": "loss"}
        last = {"last_step": points[-1][1], "last_value": 0.5, "unrolled": len(points)}
        tx.execute(insert(MetricSeries).values(id=series, stream="rank-0-1-1", number=1, **of, **last))
        tx.execute(insert(MetricPoint), [_row(series, *point) for point in points])
    return series


def _row(series: int, seq: int, step: int, time_us: int, value: float) -> dict[str, Any]:
    special = 0 if math.isfinite(value) else NON_FINITE.index(str(value)) + 1
    number = None if special else value
    return {"series_id": series, "seq": seq, "step": step, "time_us": time_us, "value": number, "special": special}


def shapes(chance: random.Random) -> Iterator[list[Point]]:
    """Series of many kinds."""
    count = 900
    yield [(n, n, n * 1000, chance.gauss(0, 1)) for n in range(count)]
    lines = sorted(chance.sample(range(20_000), count))
    yield [(line, line, line * 70, chance.choice([1.0, math.nan, math.inf, 5e300, -5e300])) for line in lines]
    yield [(n, n, n * 10, math.nan) for n in range(count)]
    yield [(n, n % 300, n * 10, float(n)) for n in range(count)]
    yield [(n, n if n % 2 else n // 50, n * 10, chance.random()) for n in range(count)]
    # Steps of very different lengths, with pauses, and a clock that was set back.
    yield [(n, n if n < 500 else n * 100, n * 10 + n // 100 * 100_000, chance.random()) for n in range(count)]
    yield [(n, n, abs(n - 300) * 10, chance.choice([1.0, -math.inf])) for n in range(count)]


def ranges(chance: random.Random, points: Sequence[Point]) -> Iterator[MetricsRange]:
    yield MetricsRange()
    yield MetricsRange(axis=Axis.TIME)
    for axis, column, scale in ((Axis.STEP, 1, 1), (Axis.TIME, 2, 1_000_000)):
        for _ in range(2):
            start, end = sorted(chance.choice(points)[column] / scale for _ in range(2))
            yield MetricsRange(axis=axis, start=start, end=chance.choice([end, None]))


def told(series: api.Series) -> tuple[Any, ...]:
    """What buckets and exact points have in common: how many, least, most, mean, and which are no numbers."""
    exact, buckets = [point for point in series.points if not isinstance(point[2], str)], series.buckets
    if buckets is None:
        values = [float(point[2]) for point in exact]
        mean = math.fsum(value / len(values) for value in values)
        ends = (min(values), max(values)) if values else ()
        count = len(values)
    else:
        assert not exact
        count = sum(buckets.count)
        mean = math.fsum(n / count * mean for n, mean in zip(buckets.count, buckets.mean, strict=True))
        ends = (min(buckets.min), max(buckets.max)) if count else ()
    scale = max(map(abs, ends), default=0)
    return count, ends, pytest.approx(mean, abs=1e-9 * scale), {point[2] for point in series.points} & set(NON_FINITE)


def check_covered(points: Sequence[tuple[int, float, api.Number]], buckets: api.Buckets) -> None:
    """Each number lies within the bounds of a bucket that has its step and its time."""
    ends = list(zip(buckets.first_step, buckets.last_step, buckets.first_time, buckets.last_time, strict=True))
    bounds = list(zip(buckets.min, buckets.max, strict=True))
    for step, time, value in points:
        assert isinstance(value, str) or any(
            first <= step <= last and early <= time <= late and least <= value <= most
            for (first, last, early, late), (least, most) in zip(ends, bounds, strict=True)
        )


def asked(plane: Plane, job: str, query: MetricsQuery) -> list[api.Series]:
    with plane.ctx.db.read() as tx:
        return list(metrics.read(tx, JobId(job), query).series)


@pytest.mark.usefixtures("small_blocks")
def test_buckets_tell_what_all_points_would(data_plane: Plane) -> None:
    chance = random.Random(1)
    for points in shapes(chance):
        first = data_plane.job()
        series = [store(data_plane, first, points)]
        if len({step for _, step, *_ in points}) > 500:
            second = data_plane.attempt(first.job, resumed_from_step=points[len(points) // 3][1])
            series.append(store(data_plane, second, points[len(points) // 2 :]))
        for each in series:
            assert roll_up(data_plane.ctx.db, each) > 0
        mark = MetricsCursor(len(series), dict.fromkeys(series, points[700][0]))
        for within in ranges(chance, points):
            for cursor in (None, str(mark)):
                exact = asked(data_plane, first.job, MetricsQuery(range=within, until=cursor))
                short = asked(data_plane, first.job, MetricsQuery(range=within, until=cursor, buckets=2000))
                assert [each.points for each in short] == [each.points for each in exact]
                rough = asked(data_plane, first.job, MetricsQuery(range=within, until=cursor, buckets=10))
                assert [told(each) for each in rough] == [told(each) for each in exact]
                for one, all_points in zip(rough, exact, strict=True):
                    if one.buckets is not None:
                        check_covered(all_points.points, one.buckets)


@pytest.mark.usefixtures("small_blocks")
def test_curves_tell_what_all_points_would(data_plane: Plane) -> None:
    chance = random.Random(2)
    for points in shapes(chance):
        seeded = data_plane.job()
        series = store(data_plane, seeded, points)
        for axis in (Axis.STEP, Axis.TIME):
            query = curves.CurvesQuery(jobs=[JobId(seeded.job)], names=frozenset({"loss"}), parts=20, axis=axis)
            exact = curves.read(data_plane.ctx.db, curves.CurveCache(), query).curves[0]
            roll_up(data_plane.ctx.db, series)
            rolled = curves.read(data_plane.ctx.db, curves.CurveCache(), query).curves[0]
            with data_plane.ctx.db.write() as tx:
                tx.execute(delete(MetricRollup))
                tx.execute(update(MetricSeries).values(rolled_seq=-1))
            assert (sum(rolled.count), rolled.last) == (sum(exact.count), exact.last)
            assert (min(rolled.min, default=0), max(rolled.max, default=0)) == (
                min(exact.min, default=0),
                max(exact.max, default=0),
            )
            assert bool(rolled.special) == bool(exact.special)


def state(plane: Plane) -> tuple[int, int]:
    """Line up to which the one series is rolled up, and how many points are behind it."""
    with plane.ctx.db.read() as tx:
        row = tx.execute(select(MetricSeries.rolled_seq, MetricSeries.unrolled)).one()
        return row.rolled_seq, row.unrolled


def send(plane: Plane, seeded: Seeded, lines: range) -> None:
    assert plane.post(seeded, "metrics", batch(lines.start, lines, loss=float)).status_code == 200


def test_long_series_are_rolled_up_as_they_come_and_charts_read_no_points(data_plane: Plane) -> None:
    seeded = data_plane.job()
    for start in range(0, 4800, 1200):
        send(data_plane, seeded, range(start, start + 1200))
    until(lambda: state(data_plane) == (4095, 704))
    query = MetricsQuery(buckets=10)
    before = asked(data_plane, seeded.job, query)
    assert before[0].buckets is not None
    assert sum(before[0].buckets.count) == 4800
    with data_plane.ctx.db.write() as tx:
        tx.execute(delete(MetricPoint).where(MetricPoint.seq <= 4095))
    assert asked(data_plane, seeded.job, query) == before


def test_a_short_series_has_no_rollups(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, range(4000))
    with data_plane.ctx.db.read() as tx:
        assert tx.scalars(select(MetricSeries.id).where(LONG_UNROLLED)).all() == []
    assert state(data_plane) == (-1, 4000)


@pytest.mark.usefixtures("small_blocks")
def test_many_that_roll_up_the_same_do_it_once(data_plane: Plane) -> None:
    seeded = data_plane.job()
    series = store(data_plane, seeded, [(n, n, n, 1.0) for n in range(700)])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: roll_up(data_plane.ctx.db, series, 200), range(12)))
    while roll_up(data_plane.ctx.db, series) >= 32:
        pass
    assert state(data_plane) == (671, 28)
    with data_plane.ctx.db.read() as tx:
        query = select(MetricRollup.first_seq, MetricRollup.last_seq).order_by(MetricRollup.first_seq)
        for level, lines in ((1, 32), (2, 256)):
            found = [tuple(row) for row in tx.execute(query.where(MetricRollup.level == level))]
            assert found == [(first, first + lines - 1) for first in range(0, 700 // lines * lines, lines)]


def test_what_was_thought_to_wait_is_counted(data_plane: Plane) -> None:
    """The migration knows the lines of a series, not how many of them have a point of it."""
    seeded = data_plane.job()
    series = store(data_plane, seeded, [(n * 1000, n, n, 1.0) for n in range(10)])
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(MetricSeries).values(unrolled=9000))
    data_plane.ctx.stored_points.look.set()
    until(lambda: state(data_plane) == (-1, 10))
    assert roll_up(data_plane.ctx.db, series) == 10


@pytest.mark.usefixtures("small_blocks")
def test_rollups_go_with_the_points(data_plane: Plane) -> None:
    seeded = data_plane.job()
    series = store(data_plane, seeded, [(n, n, n, 1.0) for n in range(300)])
    roll_up(data_plane.ctx.db, series)
    data_plane.set_state(seeded, "succeeded", settled=True)
    assert data_plane.live.client.post(f"/api/v1/jobs/{seeded.job}/discard").status_code == 200
    late = batch(300, range(300, 400), offset=0, end=1000, loss=1.0)
    assert data_plane.post(seeded, "metrics", late).status_code == 200
    roll_up(data_plane.ctx.db, series)
    with data_plane.ctx.db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(MetricRollup)) == 0
    assert state(data_plane)[1] == 0
