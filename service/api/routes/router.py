"""Routers of the API.

A route is whole when it is declared, so that the application takes it as it is. `FastAPI.include_router` would make
each one anew at the first request of a process, which keeps that one waiting, and look twice for that of every request.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.params import Depends
from fastapi.routing import APIRoute

from service.api import openapi
from service.errors import invalid
from torchyard.api import PREFIX, FieldProblem
from torchyard.spec import error_messages

#: Unknown parameters that an answer names.
MOST_NAMED = 10
#: Parameters of pages, which our client sends for lists of one page too.
PAGING = frozenset({"cursor", "limit"})


class StrictRoute(APIRoute):
    """A route that refuses parameters which it does not read: a misspelt filter would find everything."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = _query_names(self.dependant) | PAGING

        async def checked(request: Request) -> Response:
            if strange := [name for name in dict.fromkeys(request.query_params) if name not in known]:
                wrong = [(name[:100], error_messages.unknown_field(name[:100], known)) for name in strange[:MOST_NAMED]]
                raise invalid([FieldProblem(field=name, message=message) for name, message in wrong])
            return await handle(request)

        return checked


def _query_names(dependant: Dependant) -> set[str]:
    own = {field.alias for field in dependant.query_params}
    return own.union(*map(_query_names, dependant.dependencies))


def api_router(
    tag: str,
    prefix: str = "",
    *,
    dependencies: Sequence[Depends] = (),
    include_in_schema: bool = True,
    route_class: type[APIRoute] = StrictRoute,
) -> APIRouter:
    """A router of the API; the prefix is that of its paths below ``/api/v1``."""
    return APIRouter(
        prefix=PREFIX + prefix,
        tags=[tag],
        dependencies=list(dependencies),
        route_class=route_class,
        include_in_schema=include_in_schema,
        generate_unique_id_function=openapi.operation_id,
    )
