"""Reading of the samples of processors, memory and GPUs that nodes take."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from service.db.engine import Database
from service.db.models import Attempt, Job, Node, Sample
from service.errors import field_problem, not_found
from service.telemetry.series import Points, thin
from torchyard import api
from torchyard.ids import JobId

#: Samples that are read for each point that is shown.
SAMPLES_PER_POINT = 4


def of_job(db: Database, job_id: JobId, max_points: int, since: str | None) -> api.Metrics:
    """Return the telemetry series of the job's processes; a point's step is its time in whole seconds.

    Of a job that has run on several nodes, each name begins with its node's.
    """
    attempts = select(Attempt.id).where(Attempt.job_id == job_id)
    with db.read() as tx:
        if tx.scalar(select(Job.id).where(Job.id == job_id)) is None:
            raise not_found("job", job_id)
        return _read(tx, Sample.attempt_id.in_(attempts), max_points, since)


def of_node(db: Database, node: str, max_points: int, since: str | None) -> api.Metrics:
    """Return the telemetry series of the node itself; a point's step is its time in whole seconds."""
    with db.read() as tx:
        if tx.scalar(select(Node.name).where(Node.name == node)) is None:
            raise not_found("node", node)
        return _read(tx, (Sample.node == node) & (Sample.attempt_id == ""), max_points, since)


def _read(tx: Connection, where: Any, max_points: int, since: str | None) -> api.Metrics:
    after = _moment(since)
    matching = where & (Sample.time_us > after)
    count, newest = tx.execute(select(func.count(), func.max(Sample.time_us)).where(matching)).one()
    every = max(1, count // (max_points * SAMPLES_PER_POINT))
    place = func.row_number().over(order_by=Sample.time_us)
    columns = (Sample.time_us, Sample.node, Sample.values.label("sampled"), place.label("place"))
    numbered = select(*columns).where(matching).subquery()
    rows = tx.execute(
        select(numbered.c.time_us, numbered.c.node, numbered.c.sampled)
        .where(numbered.c.place % every == 0)
        .order_by(numbered.c.time_us)
    )
    several = len(tx.execute(select(Sample.node).where(where).distinct().limit(2)).all()) > 1
    series: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for time_us, node, values in rows:
        prefix = f"{node}/" if several else ""
        for name, value in values.items():
            series[prefix + name].append((time_us, float(value)))
    return api.Metrics(
        series=[_thinned(name, series[name], max_points) for name in sorted(series)],
        cursor=str(newest or after),
        reset=since is None,
    )


def _moment(text: str | None) -> int:
    if text is None:
        return -1
    if not text.isdecimal() or len(text) > 18:
        raise field_problem("since", "must be the cursor of an earlier answer: leave it out to get everything")
    return int(text)


def _thinned(name: str, points: Sequence[tuple[int, float]], max_points: int) -> api.Series:
    times = np.array([time_us for time_us, _ in points], np.int64)
    values = np.array([value for _, value in points], np.float64)
    all_points = Points(times // 1_000_000, times, values, np.zeros(len(points), np.int64))
    return api.Series.model_construct(name=name, rank=0, points=thin(all_points, max_points).rows())
