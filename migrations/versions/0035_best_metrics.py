"""Smallest and largest value of each series of metrics, with what counts of earlier attempts."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0035"
down_revision: str | None = "0034"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

#: SQLite has the points of a series side by side; PostgreSQL reads all of them once, in the order of the disk.
_OWN = {
    "sqlite": """
UPDATE metric_series SET (min_value, max_value) = (
    SELECT MIN(value), MAX(value) FROM metric_points WHERE series_id = metric_series.id
)
""",
    "postgresql": """
UPDATE metric_series SET min_value = ends.low, max_value = ends.high
FROM (SELECT series_id, MIN(value) AS low, MAX(value) AS high FROM metric_points GROUP BY series_id) AS ends
WHERE ends.series_id = metric_series.id
""",
}
#: Of a job whose points were discarded its last value is known alone.
_DISCARDED = "UPDATE metric_series SET min_value = last_value, max_value = last_value WHERE min_value IS NULL"
_JOBS = "SELECT DISTINCT job_id FROM attempts WHERE number > 1"
_SERIES = """
SELECT series.id, series.name, series.rank, series.attempt, series.stream, series.last_step, series.min_value,
    series.max_value, attempts.resumed_from_step AS resumed, (
        SELECT step FROM metric_points WHERE series_id = series.id ORDER BY seq LIMIT 1
    ) AS first_step
FROM metric_series AS series JOIN attempts ON attempts.id = series.attempt_id
WHERE series.job_id = :job
ORDER BY series.name, series.rank, series.attempt
"""
_UNTIL = "SELECT MIN(value), MAX(value) FROM metric_points WHERE series_id = :id AND step <= :last_step"
_WIDEN = """
UPDATE metric_series SET
    min_value = CASE WHEN min_value < :low THEN min_value ELSE :low END,
    max_value = CASE WHEN max_value > :high THEN max_value ELSE :high END
WHERE id = :id
"""
#: Beginnings of the streams that do not count beside one before them, or beside what the job reports itself.
_TRACKERS = ("tensorboard-rank-", "wandb-rank-", "mlflow-rank-", "trackio-rank-", "printed-rank-")


def upgrade() -> None:
    for end in ("min", "max"):
        op.add_column("metric_series", sa.Column(f"{end}_value", sa.Double(), nullable=True))
    op.execute(_OWN[op.get_context().dialect.name])
    op.execute(_DISCARDED)
    if not op.get_context().as_sql:
        connection = op.get_bind()
        # One job at a time: all series together may not fit into memory.
        for job in connection.execute(sa.text(_JOBS)).scalars().all():
            _carry_over(connection, connection.execute(sa.text(_SERIES), {"job": job}).all())
    for end in ("min", "max"):
        op.create_index(f"ix_metric_series_name_{end}", "metric_series", ["name", f"{end}_value", "number"])


def _carry_over(connection: sa.Connection, series: Sequence[Any]) -> None:
    """Let the newest series of each metric take in what earlier attempts have done that none has done again."""
    resumed = {each.attempt: each.resumed for each in series}
    for _, curve in groupby(series, key=lambda each: (each.name, each.rank)):
        attempts = {number: _counting(list(of)) for number, of in groupby(curve, key=lambda each: each.attempt)}
        found = [_until(connection, each, last_step) for each, last_step in _earlier(attempts, resumed)]
        values = [value for ends in found for value in ends if value is not None]
        if values:
            ends = {"low": min(values), "high": max(values)}
            connection.execute(sa.text(_WIDEN), [{"id": each.id, **ends} for each in attempts[max(attempts)]])


def _counting(series: Sequence[Any]) -> Sequence[Any]:
    def place(stream: str) -> int:
        return next((at for at, begin in enumerate(_TRACKERS, 1) if stream.startswith(begin)), 0)

    first = min(place(each.stream) for each in series)
    return [each for each in series if place(each.stream) == first]


def _earlier(attempts: dict[int, Sequence[Any]], resumed: dict[int, int | None]) -> Iterator[tuple[Any, int]]:
    """Yield the series of earlier attempts with the step up to which each counts."""
    last_step: int | None = None
    for number in sorted(resumed, reverse=True):
        of = attempts.get(number, ())
        if last_step is not None and number < max(attempts):
            yield from ((series, last_step) for series in of)
        last_step = min((*_begun(of, resumed[number]), *(() if last_step is None else (last_step,))), default=None)


def _begun(series: Iterable[Any], resumed: int | None) -> Sequence[int]:
    """Return the steps after which an attempt began: one that restored no checkpoint before the first one it logged."""
    if resumed is not None:
        return [resumed]
    return [each.first_step - 1 for each in series if each.first_step is not None]


def _until(connection: sa.Connection, series: Any, last_step: int) -> Sequence[float | None]:
    """Return the smallest and the largest value of a series up to a step."""
    if series.first_step is None or series.first_step > last_step:
        return []
    if series.last_step <= last_step:
        return [series.min_value, series.max_value]
    return connection.execute(sa.text(_UNTIL), {"id": series.id, "last_step": last_step}).one()


def downgrade() -> None:
    for end in ("min", "max"):
        op.drop_index(f"ix_metric_series_name_{end}", "metric_series")
        op.drop_column("metric_series", f"{end}_value")
