"""Filters of lists by a metric's newest, smallest or largest value, such as ``max:val/accuracy > 0.9``."""

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

from sqlalchemy import ColumnElement, and_, case, false, func, select, true
from sqlalchemy.orm import aliased

from service.db.models import Job, MetricSeries
from service.errors import field_problem
from torchyard.ids import JobId
from torchyard.translatable import TranslatableText

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
}
#: Which value of a metric is compared.
Which = Literal["last", "min", "max"]
_VALUES = {"last": MetricSeries.last_value, "min": MetricSeries.min_value, "max": MetricSeries.max_value}
_FORM = re.compile(
    r"\s*(?:(?P<which>min|max):\s*|(?!(?:min|max):))"
    r"(?P<name>[^<>=!\s](?:[^<>=!]*[^<>=!\s])?)\s*(?P<operator>>=|<=|!=|=|>|<)\s*(?P<value>\S+)\s*"
)


@dataclass(frozen=True, slots=True)
class MetricFilter:
    """Comparison of a metric's value, of the job's lowest rank that reports, with a number."""

    name: str
    operator: str
    value: float
    which: Which = "last"


def parse(text: str) -> MetricFilter:
    """Return the filter that a text such as ``val/loss<0.3`` says; an ``invalid-request`` problem for any other."""
    found = _FORM.fullmatch(text)
    value = math.nan if found is None else _number(found["value"])
    if found is None or not math.isfinite(value):
        raise field_problem(
            "metric",
            TranslatableText(
                "metric-filter",
                "{text!r} is no comparison of a metric with a finite number: write it as val/accuracy>0.9, or "
                "max:val/accuracy>0.9 for the largest value",
                text=text,
            ),
        )
    return MetricFilter(found["name"], found["operator"], value, cast("Which", found["which"] or "last"))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def compares(wanted: MetricFilter) -> ColumnElement[bool]:
    """Return the condition of a series whose value passes, whether or not it is the one that a list shows."""
    compared = _OPERATORS[wanted.operator](_VALUES[wanted.which], wanted.value)
    return and_(MetricSeries.name == wanted.name, compared)


def passes(wanted: MetricFilter) -> ColumnElement[bool]:
    """Return the condition of a series: its value passes, and is the one that the job's list shows.

    Name and value are in one index with the job's number; the rest is looked at where these pass.
    """
    return and_(compares(wanted), is_shown(wanted.name))


def value_in(name: str, which: Which) -> tuple[ColumnElement[float | None], ColumnElement[bool]]:
    """Return a metric's value, which may be null, and the condition of the one series of each job that has it.

    What a job logs twice, as by two trackers, it has once. Only of a job that passes all else it is looked up.
    """
    other = aliased(MetricSeries)
    same = and_(other.attempt == MetricSeries.attempt, other.rank == MetricSeries.rank, other.name == name)
    first = select(func.min(other.id)).where(other.job_id == Job.id, same).correlate(Job, MetricSeries)
    value: ColumnElement[float | None] = _VALUES[which].expression
    shown = is_shown(name, Job.id.expression)
    # As one expression: of several equalities PostgreSQL joins, and sorts, all series, since it expects that few pass.
    it = case((and_(shown, MetricSeries.id == first.scalar_subquery()), true()), else_=false())
    return value, and_(MetricSeries.name == name, it)


def is_shown(name: str | ColumnElement[str], job_id: ColumnElement[JobId] | None = None) -> ColumnElement[bool]:
    """Return the condition of a series of a metric: it is of the lowest rank, and of the newest attempt that has it.

    `job_id` is that of the series by default. With one of the table of jobs, databases look at other conditions of the
    job first.
    """
    other = aliased(MetricSeries)
    of_job = other.job_id == (MetricSeries.job_id if job_id is None else job_id)
    lowest = select(func.min(other.rank)).where(of_job).correlate(Job, MetricSeries).scalar_subquery()
    newest = select(func.max(other.attempt)).where(of_job, other.name == name).correlate(Job, MetricSeries)
    return and_(MetricSeries.rank == lowest, MetricSeries.attempt == newest.scalar_subquery())
