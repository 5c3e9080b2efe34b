"""Points that follow a cursor, for streams: no more are read than are told."""

import pytest

from service.telemetry import metrics, rollups
from tests.support.plane import Plane, batch
from torchyard import api
from torchyard.ids import JobId


def newer(plane: Plane, job: str, since: str, until: str | None = None, most: int = 3) -> api.Metrics:
    return metrics.newer(plane.ctx.db, JobId(job), since, until, most)


def everything(plane: Plane, job: str) -> api.Metrics:
    with plane.ctx.db.read() as tx:
        return metrics.read(tx, JobId(job), metrics.MetricsQuery())


def steps(found: api.Metrics) -> list[int]:
    return [step for series in found.series for step, _, _ in series.points]


def test_nothing_is_read_for_whoever_reads_all_anew(data_plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    first = data_plane.job()
    assert newer(data_plane, first.job, "") == api.Metrics(series=[], cursor="AA", reset=True)
    data_plane.post(first, "metrics", batch(0, range(5), loss=1.0, accuracy=0.5))
    early = everything(data_plane, first.job).cursor
    data_plane.post(first, "metrics", batch(5, range(5, 9), loss=1.0))
    cursor = everything(data_plane, first.job).cursor
    monkeypatch.setattr(rollups, "rows", None)
    for since in ("", "AA", early):
        assert newer(data_plane, first.job, since) == api.Metrics(series=[], cursor=cursor, reset=True)
    assert newer(data_plane, first.job, "", early) == api.Metrics(series=[], cursor=early, reset=True)
    second = data_plane.attempt(first.job, resumed_from_step=4)
    data_plane.post(second, "metrics", batch(0, [5], loss=1.0))
    assert newer(data_plane, first.job, cursor).reset


def test_few_points_are_told(data_plane: Plane) -> None:
    first = data_plane.job()
    cursors = []
    for step in range(5):
        data_plane.post(first, "metrics", batch(step, [step], loss=1.0))
        cursors.append(everything(data_plane, first.job).cursor)
    assert steps(newer(data_plane, first.job, cursors[1])) == [2, 3, 4]
    assert newer(data_plane, first.job, cursors[0]).reset
    found = newer(data_plane, first.job, cursors[0], cursors[2])
    assert (steps(found), found.cursor, found.reset) == ([1, 2], cursors[2], False)
