"""Filters of lists by a metric's newest value, such as ``val/accuracy > 0.9``."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import aliased

from service.db.models import MetricSeries
from service.errors import field_problem

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
}
_FORM = re.compile(r"\s*(?P<name>[^<>=!]*[^<>=!\s])\s*(?P<operator>>=|<=|!=|=|>|<)\s*(?P<value>\S+)\s*")


@dataclass(frozen=True, slots=True)
class MetricFilter:
    """Comparison of a metric's newest value, of the job's lowest rank that reports, with a number."""

    name: str
    operator: str
    value: float


def parse(text: str) -> MetricFilter:
    """Return the filter that a text such as ``val/loss<0.3`` says; an ``invalid-request`` problem for any other."""
    found = _FORM.fullmatch(text)
    try:
        if found is not None:
            return MetricFilter(found["name"], found["operator"], float(found["value"]))
    except ValueError:
        pass
    raise field_problem("metric", f"{text!r} is no comparison of a metric with a number: write it as val/accuracy>0.9")


def compares(wanted: MetricFilter) -> ColumnElement[bool]:
    """Return the condition of a series whose newest value passes, whether or not it is the one that a list shows."""
    compared = _OPERATORS[wanted.operator](MetricSeries.last_value, wanted.value)
    return and_(MetricSeries.name == wanted.name, compared)


def passes(wanted: MetricFilter) -> ColumnElement[bool]:
    """Return the condition of a series: its newest value passes, and is the one that the job's list shows.

    Name and value are in one index with the job's number; the rest is looked at where these pass.
    """
    other = aliased(MetricSeries)
    of_job = other.job_id == MetricSeries.job_id
    lowest = select(func.min(other.rank)).where(of_job).scalar_subquery()
    newest = select(func.max(other.attempt)).where(of_job, other.name == wanted.name).scalar_subquery()
    return and_(compares(wanted), MetricSeries.rank == lowest, MetricSeries.attempt == newest)
