"""Routers of the API.

A route is whole when it is declared, so that the application takes it as it is. `FastAPI.include_router` would make
each one anew at the first request of a process, which keeps that one waiting, and look twice for that of every request.
"""

from collections.abc import Sequence

from fastapi import APIRouter
from fastapi.params import Depends

from service.api import openapi
from torchyard.api import PREFIX


def api_router(
    tag: str, prefix: str = "", *, dependencies: Sequence[Depends] = (), include_in_schema: bool = True
) -> APIRouter:
    """A router of the API; the prefix is that of its paths below ``/api/v1``."""
    return APIRouter(
        prefix=PREFIX + prefix,
        tags=[tag],
        dependencies=list(dependencies),
        include_in_schema=include_in_schema,
        generate_unique_id_function=openapi.operation_id,
    )
