"""A job's start and end, as its node reports them, are what later jobs of its kind are expected to take."""

import pytest
from sqlalchemy import select

from service.db.models import Forecast
from tests.support.plane import Plane
from torchyard import wire

RAN_US = 90_000_000


@pytest.mark.parametrize(("code", "actual"), [(0, RAN_US), (1, None)])
def test_what_a_node_reports_is_learnt(data_plane: Plane, code: int, actual: int | None) -> None:
    job = data_plane.job(state="starting", time_limit=600)
    begun = data_plane.ctx.now_us()
    assert data_plane.post(job, "running", wire.Started(started_us=begun)).status_code == 204
    exited = wire.ResultKind.EXITED
    result = wire.Result(kind=exited, exit_code=code, started_us=begun, ended_us=begun + RAN_US)
    assert data_plane.post(job, "result", result).status_code == 204
    with data_plane.ctx.db.read() as tx:
        row = tx.execute(select(Forecast.__table__).where(Forecast.job_id == job.job)).one()
    assert (row.source, row.p90_us, row.actual_us) == ("limit", 600_000_000, actual)
