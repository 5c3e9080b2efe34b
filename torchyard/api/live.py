"""The stream of events as the REST API shows it."""

from typing import Annotated

from pydantic import Field

from torchyard.api.base import Resource


class LiveTopics(Resource):
    """``PUT /live/{stream}``: all that the stream follows from now on."""

    topics: Annotated[list[Annotated[str, Field(max_length=60_000)]], Field(max_length=500)]
    """Such as `jobs`, `queue`, `nodes`, `job:ID`, `metrics:ID:CURSOR` and `log:ID:ATTEMPT:RANK:OFFSET`."""
