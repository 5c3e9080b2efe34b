"""Query parameters that lists share."""

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import Depends, Query
from pydantic import Field

from service.jobs import find, metric_filter
from torchyard.states import JobState

MOST_NUMBER = 10**15
Comparison = Annotated[str, Field(max_length=300)]


def _whose(
    user: Annotated[str | None, Query(description="Only jobs of this user.")] = None,
    project: Annotated[str | None, Query(description="Only jobs of this project.")] = None,
    tag: Annotated[list[str], Query(description="Only jobs with one of these tags; an empty one: without tags.")] = [],  # noqa: B006  FastAPI copies it
    q: Annotated[str | None, Query(max_length=200, description="Words of the name, a number or an id.")] = None,
    metric: Annotated[
        list[Comparison],
        Query(
            description="Comparisons of a metric's newest value, of the lowest rank that reports, with a number; after "
            "`max:` or `min:` of the largest or smallest one.",
            examples=["val/accuracy>0.9", "max:val/accuracy>0.9"],
            max_length=8,
        ),
    ] = [],  # noqa: B006
    before: Annotated[int | None, Query(ge=1, le=MOST_NUMBER, description="Only jobs with smaller numbers.")] = None,
    after: Annotated[int | None, Query(ge=0, le=MOST_NUMBER, description="Only jobs with larger numbers.")] = None,
) -> find.Filters:
    metrics = [metric_filter.parse(each) for each in metric]
    return find.Filters(user=user, project=project, tag=tag, q=q, metric=metrics, before=before, after=after)


AnyState = Annotated[find.Filters, Depends(_whose)]


def _listed(
    filters: AnyState,
    state: Annotated[list[JobState], Query(description="Only jobs in one of these states.")] = [],  # noqa: B006
) -> find.Filters:
    return replace(filters, state=state)


Listed = Annotated[find.Filters, Depends(_listed)]
LIMIT = "Items of the page at most."
CURSOR = "`next` of the page before; absent: the first page."
Limit = Annotated[int, Query(ge=1, le=find.MAX_PAGE, description=LIMIT)]
Cursor = Annotated[str | None, Query(description=CURSOR)]
InSweep = Annotated[str | None, Query(description="Number, id or name of a sweep: only trials of such sweeps.")]
Format = Annotated[Literal["json", "csv"], Query(description="Form of the answer.")]
