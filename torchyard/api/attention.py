"""Faults that need attention on the box, as the REST API shows them."""

from datetime import datetime
from typing import Any, Literal

from torchyard.api.base import Resource


class Attention(Resource):
    """Something that goes wrong now, or went wrong, and that somebody should look at."""

    kind: Literal["failed", "hung", "nan", "idle", "node-silent", "disk-low", "device-unusable", "offender"]
    """What goes wrong."""
    message: str
    """What is wrong, in words that follow the job's or node's name; of a failure, the exception's own line."""
    params: dict[str, Any] = {}
    """What the message is made of, for words in another language; the keys depend on the kind, and empty means that the
    message alone says it. Of a failure `error`, without its traceback, unless the message is a line of that; of devices
    and offenders `finding`, as far as their node tells it."""
    since: datetime | None = None
    """Since when; null: that is not known."""
    node: str | None = None
    """The node that it happens on; null: none in particular."""
    job: int | None = None
    """Number of the job; null: no job's."""
    name: str | None = None
    """Name of the job; null: no job's, or one that the caller may not read."""
    user: str | None = None
    """Owner of the job."""
    readable: bool = True
    """Whether the caller may read the job; its name is not shown otherwise."""
