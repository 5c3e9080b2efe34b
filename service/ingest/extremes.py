"""Smallest and largest value of metrics, kept as points arrive, of a job's whole curve."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import BindParameter, Connection, Double, bindparam, case, func, or_, select, update

from service.db.chunks import chunks
from service.db.models import MetricPoint, MetricSeries
from service.telemetry import metrics
from torchyard.ids import JobId

_LOW: BindParameter[float] = bindparam("low", type_=Double())
_HIGH: BindParameter[float] = bindparam("high", type_=Double())
_LEAST, _MOST = MetricSeries.min_value, MetricSeries.max_value
#: Columns of a series that takes in values from `low` to `high`; None: it stays as it is.
WIDENED: dict[str, Any] = {
    "min_value": case((or_(_LEAST.is_(None), _LOW < _LEAST), _LOW), else_=_LEAST),
    "max_value": case((or_(_MOST.is_(None), _HIGH > _MOST), _HIGH), else_=_MOST),
}
_WIDEN = update(MetricSeries).where(MetricSeries.id == bindparam("series")).values(**WIDENED)
_FIRST_STEP = (
    select(MetricPoint.step)
    .where(MetricPoint.series_id == MetricSeries.id)
    .order_by(MetricPoint.seq)
    .limit(1)
    .scalar_subquery()
)


def carry_over(tx: Connection, job_id: JobId, begun: Collection[int]) -> None:
    """Let series that have just got their first points take in what still counts of earlier attempts.

    What a later attempt does again is left out, as it is of the job's curve.
    """
    if not begun:
        return
    names = frozenset(tx.scalars(select(MetricSeries.name).where(MetricSeries.id.in_(begun))))
    curves = [each.series for each in metrics.curves(tx, job_id, names) if not each.series.keys().isdisjoint(begun)]
    limits = {series: last for curve in curves for series, last in curve.items() if last is not None}
    counted = _counted(tx, job_id, names, limits)
    widened: list[dict[str, int | float]] = []
    for curve in curves:
        ends = [counted[series] for series in curve if series in counted]
        if ends:
            low, high = min(low for low, _ in ends), max(high for _, high in ends)
            newest = [series for series, last in curve.items() if last is None and series in begun]
            widened += [{"series": series, "low": low, "high": high} for series in newest]
    if widened:
        tx.execute(_WIDEN, widened)


def _counted(
    tx: Connection, job_id: JobId, names: Collection[str], limits: Mapping[int, int]
) -> dict[int, tuple[float, float]]:
    """Return the smallest and the largest value of series up to a step each, of those that have values up to it.

    Points are read only of those that have some on both sides of it.
    """
    query = select(MetricSeries.id, MetricSeries.last_step, _FIRST_STEP.label("first_step"), _LEAST, _MOST)
    counted: dict[int, tuple[float, float]] = {}
    partly: defaultdict[int, list[int]] = defaultdict(list)
    for row in tx.execute(
        query.where(MetricSeries.job_id == job_id, MetricSeries.name.in_(names), _LEAST.is_not(None))
    ):
        limit = limits.get(row.id)
        if limit is None or row.first_step is None or row.first_step > limit:
            continue
        if row.last_step > limit:
            partly[limit].append(row.id)
        else:
            counted[row.id] = row.min_value, row.max_value
    ends = select(MetricPoint.series_id, func.min(MetricPoint.value), func.max(MetricPoint.value))
    for limit, series in partly.items():
        for some in chunks(series):
            up_to = ends.where(MetricPoint.series_id.in_(some), MetricPoint.step <= limit)
            found = tx.execute(up_to.group_by(MetricPoint.series_id))
            counted |= {each: (low, high) for each, low, high in found if low is not None and high is not None}
    return counted
