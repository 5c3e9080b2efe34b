"""Notices of the administrators to everybody: the pause of the queue, and the announcement."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field

from torchyard.api.base import Resource, Text
from torchyard.control_characters import check_name

#: One line.
NoticeText = Annotated[Text, Field(max_length=500), AfterValidator(check_name)]


class NewPause(Resource):
    """``PUT /pause``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    message: NoticeText = ""
    """Why, for everybody to read."""


class Pause(Resource):
    """The queue is paused: no job starts, and none is preempted; those that run go on."""

    message: str
    """Why, for everybody to read."""
    user: str
    """Who has paused it."""
    since: datetime
    """When it was paused."""


class NewAnnouncement(Resource):
    """``PUT /announcement``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    message: Annotated[NoticeText, Field(min_length=1)]
    """What everybody is told."""
    until: AwareDatetime | None = None
    """When it goes by itself; absent: once it is taken away."""


class Announcement(Resource):
    """A word to everybody, in dashboard and command line."""

    message: str
    """What everybody is told."""
    user: str
    """Who announced it."""
    since: datetime
    """When it was announced."""
    until: datetime | None
    """When it goes by itself; null: once it is taken away."""


class Notices(Resource):
    """``GET /notices``: what everybody should know now."""

    pause: Pause | None
    """The pause of the queue; null: it is not paused."""
    announcement: Announcement | None
    """What everybody is told; null: nothing."""
