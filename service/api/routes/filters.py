"""Query parameters that lists share."""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Query

from service.jobs import find
from torchyard.states import JobState


def _whose(
    user: str | None = None,
    project: str | None = None,
    tag: Annotated[list[str], Query()] = [],  # noqa: B006  FastAPI copies it
    q: Annotated[str | None, Query(max_length=200)] = None,
) -> find.Filters:
    return find.Filters(user=user, project=project, tag=tag, q=q)


AnyState = Annotated[find.Filters, Depends(_whose)]


def _listed(filters: AnyState, state: Annotated[list[JobState], Query()] = []) -> find.Filters:  # noqa: B006
    return replace(filters, state=state)


Listed = Annotated[find.Filters, Depends(_listed)]
Limit = Annotated[int, Query(ge=1, le=find.MAX_PAGE)]
