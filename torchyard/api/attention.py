"""Faults that need attention on the box, as the REST API shows them."""

from datetime import datetime
from typing import Literal

from torchyard.api.base import Resource


class Attention(Resource):
    """Something that goes wrong now, or went wrong, and that somebody should look at."""

    kind: Literal["failed", "hung", "nan", "idle", "node-silent", "disk-low", "device-unusable", "offender"]
    #: What is wrong, in words that follow the job's or node's name; of a failure, the exception's own line.
    message: str
    since: datetime | None = None
    node: str | None = None
    #: Number of the job, and whose it is.
    job: int | None = None
    name: str | None = None
    user: str | None = None
    #: Whether the caller may read the job; its name is not shown otherwise.
    readable: bool = True
