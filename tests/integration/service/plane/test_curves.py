"""Metrics of many jobs on one grid."""

from typing import Any

import pytest
from sqlalchemy import update

from service.db.models import Job
from tests.support.plane import Plane, Seeded, batch


def send(plane: Plane, seeded: Seeded, *arguments: Any, **values: Any) -> None:
    assert plane.post(seeded, "metrics", batch(*arguments, **values)).status_code == 200


def curves(plane: Plane, *jobs: Seeded, **params: Any) -> Any:
    answer = plane.get("/metrics/curves", params={"jobs": ",".join(each.job for each in jobs), **params})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_curves_of_several_jobs_lie_on_one_grid(data_plane: Plane) -> None:
    one, other = data_plane.job(), data_plane.job()
    send(data_plane, one, 0, range(100), loss=float)
    send(data_plane, one, 0, range(100), rank=1, stream="rank-1-1-1", loss=7.0)
    send(data_plane, other, 0, range(40), loss=2.0)
    body = curves(data_plane, one, other, names="loss,lr", parts=25)
    assert (body["width"], body["rough"]) == (4, False)
    first, second = body["curves"]
    assert (first["job"], first["name"], first["number"]) == (one.job, "loss", list(range(25)))
    assert (first["min"][3], first["mean"][3], first["max"][3], first["count"][3]) == (12, 13.5, 15, 4)
    assert first["last"] == 99
    assert (second["number"], second["last"]) == (list(range(10)), 2)
    assert curves(data_plane, one, other, names="loss,lr", parts=25) == body
    send(data_plane, other, 40, range(40, 44), loss=3.0)
    assert curves(data_plane, one, other, names="loss", parts=25)["curves"][1]["last"] == 3


def test_a_range_is_told_step_by_step(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, 0, range(1000), loss=lambda step: "nan" if step == 505 else float(step))
    body = curves(data_plane, seeded, names="loss", parts=64, start=500, end=520)
    assert body["width"] == 1
    curve = body["curves"][0]
    assert curve["number"] == [each for each in range(500, 521) if each != 505]
    assert curve["special"] == [505]
    assert curve["min"] == curve["max"] == curve["mean"]


def test_a_first_look_reads_some_points(data_plane: Plane) -> None:
    seeded, empty = data_plane.job(), data_plane.job()
    send(data_plane, seeded, 0, range(1000), loss=float)
    body = curves(data_plane, seeded, empty, names="loss", parts=100, rough=True)
    assert body["rough"]
    curve = body["curves"][0]
    assert curve["last"] == 999
    assert 60 < len(curve["number"]) <= 101
    assert sum(curve["count"]) <= 101
    exact = curves(data_plane, seeded, names="loss", parts=100)
    assert exact["width"] == body["width"]


def test_a_later_attempt_replaces_what_it_has_done_again(data_plane: Plane) -> None:
    first = data_plane.job()
    send(data_plane, first, 0, range(10), loss=1.0)
    second = data_plane.attempt(first.job, resumed_from_step=6)
    send(data_plane, second, 0, range(7, 12), loss=2.0)
    for rough in (False, True):
        curve = curves(data_plane, first, names="loss", parts=50, rough=rough)["curves"][0]
        assert curve["number"] == list(range(12))
        assert curve["mean"] == [1] * 7 + [2] * 5


def test_time_counts_from_each_jobs_start(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, 0, range(3), loss=1.0)
    point = data_plane.get(f"/jobs/{seeded.job}/metrics").json()["series"][0]["points"][0]
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Job).where(Job.id == seeded.job).values(started_us=int(point[1] * 1e6) - 10_000_000))
    body = curves(data_plane, seeded, names="loss", axis="time")
    assert body["curves"][0]["number"][0] * body["width"] == pytest.approx(10, abs=0.1)


def test_what_is_asked_for_is_checked(data_plane: Plane) -> None:
    seeded = data_plane.job()
    get = data_plane.get
    assert get("/metrics/curves", params={"jobs": f"{seeded.job},job-none", "names": "loss"}).status_code == 404
    assert get("/metrics/curves", params={"jobs": seeded.job}).status_code == 422
    many = ",".join(map(str, range(201)))
    assert get("/metrics/curves", params={"jobs": many, "names": "loss"}).json()["errors"][0]["field"] == "jobs"
    names = ",".join(f"m{each}" for each in range(21))
    assert get("/metrics/curves", params={"jobs": seeded.job, "names": names}).json()["errors"][0]["field"] == "names"
    assert curves(data_plane, seeded, names="loss")["curves"] == []
