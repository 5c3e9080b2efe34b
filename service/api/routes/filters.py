"""Query parameters that lists share."""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Query
from pydantic import Field

from service.jobs import find, metric_filter
from torchyard.states import JobState

Comparison = Annotated[str, Field(max_length=300)]


def _whose(
    user: str | None = None,
    project: str | None = None,
    tag: Annotated[list[str], Query()] = [],  # noqa: B006  FastAPI copies it
    q: Annotated[str | None, Query(max_length=200)] = None,
    metric: Annotated[
        list[Comparison],
        Query(
            description="Comparisons of a metric's newest value, of the lowest rank that reports, with a number.",
            examples=["val/accuracy>0.9"],
            max_length=8,
        ),
    ] = [],  # noqa: B006
) -> find.Filters:
    return find.Filters(user=user, project=project, tag=tag, q=q, metric=[metric_filter.parse(each) for each in metric])


AnyState = Annotated[find.Filters, Depends(_whose)]


def _listed(filters: AnyState, state: Annotated[list[JobState], Query()] = []) -> find.Filters:  # noqa: B006
    return replace(filters, state=state)


Listed = Annotated[find.Filters, Depends(_listed)]
Limit = Annotated[int, Query(ge=1, le=find.MAX_PAGE)]
