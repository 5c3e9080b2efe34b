"""Smallest and largest values of metrics: of what a job's curve shows, as points arrive, on both databases."""

from typing import Any

from sqlalchemy import select

from service.db.models import MetricSeries
from tests.support.plane import Plane, Seeded, batch

Ends = tuple[float | None, float | None]


def send(plane: Plane, seeded: Seeded, *arguments: Any, **values: Any) -> None:
    assert plane.post(seeded, "metrics", batch(*arguments, **values)).status_code == 200


def ends(plane: Plane, seeded: Seeded, name: str = "loss", rank: int = 0) -> Ends:
    of_it = (MetricSeries.attempt_id == seeded.attempt, MetricSeries.name == name, MetricSeries.rank == rank)
    with plane.ctx.db.read() as tx:
        low, high = tx.execute(select(MetricSeries.min_value, MetricSeries.max_value).where(*of_it)).one()
        return low, high


def found(plane: Plane, metric: str) -> list[str]:
    return [job["id"] for job in plane.get("/jobs", params={"metric": metric}).json()["items"]]


def test_each_batch_widens_them_by_its_finite_values(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, 0, [1, 2], loss="nan", lr="inf")
    assert ends(data_plane, seeded) == ends(data_plane, seeded, "lr") == (None, None)
    send(data_plane, seeded, 2, [3, 4, 5], loss=lambda step: {3: 0.5, 4: -2.0, 5: "-inf"}[step], lr=0.1)
    assert (ends(data_plane, seeded), ends(data_plane, seeded, "lr")) == ((-2.0, 0.5), (0.1, 0.1))
    send(data_plane, seeded, 5, [6], loss=0.25)
    send(data_plane, seeded, 6, [7], loss="nan")
    assert ends(data_plane, seeded) == (-2.0, 0.5)
    send(data_plane, seeded, 5, [6, 7, 8], loss=lambda step: {6: 0.25, 7: "nan", 8: 3.0}[step])
    assert ends(data_plane, seeded) == (-2.0, 3.0)


def test_jobs_are_found_by_them(data_plane: Plane) -> None:
    best, other = data_plane.job(), data_plane.job()
    send(data_plane, best, 0, [1, 2], accuracy=lambda step: 1 - step / 10)
    send(data_plane, best, 0, [1], rank=1, stream="rank-1-1-1", accuracy=5.0)
    send(data_plane, other, 0, [1, 2], accuracy=lambda step: step / 10)
    assert found(data_plane, "max:accuracy > 0.85") == [best.job]
    assert found(data_plane, "min:accuracy<=0.1") == [other.job]
    assert found(data_plane, "accuracy>0.85") == found(data_plane, "max:accuracy>4") == []


def test_what_a_later_attempt_does_again_does_not_count(data_plane: Plane) -> None:
    first = data_plane.job()
    send(data_plane, first, 0, range(10), loss=lambda step: 10.0 - step)
    second = data_plane.attempt(first.job, resumed_from_step=6)
    send(data_plane, second, 0, [7, 8], loss=20.0)
    assert ends(data_plane, second) == (4.0, 20.0)
    assert found(data_plane, "max:loss>19") == found(data_plane, "min:loss<4.5") == [first.job]
    assert found(data_plane, "min:loss<4") == []
    third = data_plane.attempt(first.job, resumed_from_step=3)
    send(data_plane, third, 0, [4], loss=8.5)
    assert ends(data_plane, third) == (7.0, 10.0)
    afresh = data_plane.attempt(first.job)
    send(data_plane, afresh, 0, [0], loss=4.0)
    assert ends(data_plane, afresh) == (4.0, 4.0)
    goes_on = data_plane.attempt(first.job)
    send(data_plane, goes_on, 0, [2], loss=1.0)
    assert ends(data_plane, goes_on) == (1.0, 4.0)


def test_each_metric_and_rank_goes_on_with_its_own(data_plane: Plane) -> None:
    first = data_plane.job()
    send(data_plane, first, 0, [1, 2], loss=3.0, accuracy=0.5)
    send(data_plane, first, 0, [1, 2], rank=1, stream="rank-1-1-1", loss=9.0)
    second = data_plane.attempt(first.job, resumed_from_step=2)
    send(data_plane, second, 0, [3], loss=2.0)
    send(data_plane, second, 1, [4], loss=1.0, accuracy=0.75)
    assert (ends(data_plane, second), ends(data_plane, second, "accuracy")) == ((1.0, 3.0), (0.5, 0.75))
    send(data_plane, second, 0, [3], rank=1, stream="rank-1-1-1", loss=8.0)
    assert (ends(data_plane, second), ends(data_plane, second, rank=1)) == ((1.0, 3.0), (8.0, 8.0))


def test_what_a_tracker_logs_too_is_not_carried_over(data_plane: Plane) -> None:
    first = data_plane.job()
    send(data_plane, first, 0, [1, 2], loss=3.0)
    send(data_plane, first, 0, [1, 2], stream="wandb-rank-0", loss=-9.0)
    second = data_plane.attempt(first.job, resumed_from_step=2)
    send(data_plane, second, 0, [3], loss=2.0)
    assert ends(data_plane, second) == (2.0, 3.0)


def test_runs_that_begin_at_one_checkpoint_again_and_again_count_once(data_plane: Plane) -> None:
    first = data_plane.job()
    send(data_plane, first, 0, [1, 2], loss=float)
    for value in (-7.0, -8.0, 5.0):
        later = data_plane.attempt(first.job, resumed_from_step=1)
        send(data_plane, later, 0, [2, 3], loss=value)
    assert ends(data_plane, later) == (1.0, 5.0)


def test_the_ends_of_several_jobs_are_read_at_once(data_plane: Plane) -> None:
    one, other = data_plane.job(), data_plane.job()
    send(data_plane, one, 0, [1, 2], loss=lambda step: 3.0 - step, lr="nan")
    send(data_plane, one, 0, [1], rank=1, stream="rank-1-1-1", loss=9.0)
    send(data_plane, other, 0, range(4), loss=lambda step: step / 4, accuracy=0.5)
    later = data_plane.attempt(other.job, resumed_from_step=1)
    send(data_plane, later, 0, [2], loss=7.0)

    def read(jobs: list[Seeded], names: str) -> set[tuple[str, ...]]:
        query = {"jobs": ",".join(each.job for each in jobs), "names": names}
        found = data_plane.get("/metrics/extremes", params=query).json()["extremes"]
        return {(each["job"], each["name"], each["min"], each["max"]) for each in found}

    of_other = {(other.job, "loss", 0, 7.0), (other.job, "accuracy", 0.5, 0.5)}
    assert read([one, other], "loss,lr,accuracy") == {(one.job, "loss", 1.0, 2.0), *of_other}
    assert read([other], "accuracy,none") == {(other.job, "accuracy", 0.5, 0.5)}
    many = data_plane.get("/metrics/extremes", params={"jobs": one.job, "names": [str(n) for n in range(201)]})
    assert (many.status_code, many.json()["errors"][0]["field"]) == (422, "names")
