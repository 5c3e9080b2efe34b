"""Public links to jobs, and what they show."""

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field

from torchyard.api.base import Number, Resource
from torchyard.api.jobs import Progress
from torchyard.quantities import Duration
from torchyard.states import JobState

DAY_S = 86_400


class NewSharedLink(Resource):
    """``POST /jobs/{id}/link``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    expires_in: Annotated[Duration, Field(ge=60, le=90 * DAY_S)] = 7 * DAY_S
    """How long the link counts, 90 days at most; absent: 7 days."""


class SharedLink(Resource):
    url: str
    """Address that shows the job in a browser, by the name under which the service was asked."""
    token: str
    """The link's token, which is the last part of its address."""
    expires_at: datetime
    """When it no longer counts."""


class SharedLinks(Resource):
    """``GET /jobs/{id}/link``."""

    expires_at: datetime | None
    """When the last of the links to the job expires; null: none opens."""


class SharedRun(Resource):
    """The part of a job that a public link shows: these fields and the metrics, and nothing else."""

    name: str
    """Its name."""
    owner: str
    """Name of its owner."""
    state: JobState
    """Where it is on its way."""
    created_at: datetime
    """When it was submitted."""
    started_at: datetime | None
    """When its first instruction ran; null: it has not started."""
    ended_at: datetime | None
    """When it ended; null: it has not."""
    ran_s: float = 0
    """Seconds that its attempts ran which have ended, without the waits between them."""
    running_since: datetime | None = None
    """When the first instruction of the attempt ran that it has now; null: it has none, or that has not started."""
    progress: Progress | None
    """How far it is; null: that is not known."""
    latest: dict[str, Number]
    """Last value of each metric of the lowest rank that reports."""
