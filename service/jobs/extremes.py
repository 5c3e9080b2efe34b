"""Smallest and largest values of metrics of many jobs."""

from collections.abc import Collection, Sequence

from sqlalchemy import func, select

from service.db.engine import Database
from service.db.models import MetricSeries
from service.jobs import metric_filter
from torchyard import api
from torchyard.ids import JobId


def read(db: Database, jobs: Sequence[JobId], names: Collection[str]) -> api.Extremes:
    """Return the ends of the metrics that the jobs have; they must exist."""
    query = (
        select(
            MetricSeries.job_id, MetricSeries.name, func.min(MetricSeries.min_value), func.max(MetricSeries.max_value)
        )
        .where(MetricSeries.job_id.in_(jobs), MetricSeries.name.in_(names))
        .where(metric_filter.is_shown(MetricSeries.name.expression))
        .group_by(MetricSeries.job_id, MetricSeries.name)
        .order_by(MetricSeries.job_id, MetricSeries.name)
    )
    with db.read() as tx:
        found = tx.execute(query).all()
    return api.Extremes(
        extremes=[
            api.Extreme(job=job, name=name, min=low, max=high)
            for job, name, low, high in found
            if low is not None and high is not None
        ]
    )
