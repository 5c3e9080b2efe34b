"""Liveness, readiness and metrics of the service."""

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy.exc import SQLAlchemyError

from service.api.answers import object_answer
from service.api.auth import context, requires
from service.api.openapi import operation_id
from service.context import Context
from service.errors import ProblemError
from service.infra.observability import CONTENT_TYPE, Counters

router = APIRouter(tags=["health"], generate_unique_id_function=operation_id)


@router.get("/healthz")
async def healthz() -> Response:
    """Tell that the process answers."""
    return object_answer({"status": "ok"})


@router.get("/readyz")
def readyz(ctx: Context = Depends(context)) -> Response:
    """Tell that the database answers, too."""
    try:
        ctx.db.ping()
    except SQLAlchemyError as error:
        raise ProblemError("unavailable", "The database does not answer: see the service's log.") from error
    return object_answer({"status": "ready"})


@router.get("/metrics", dependencies=[requires("read")])
def prometheus(request: Request) -> Response:
    """Show the service's metrics for Prometheus. Give its scraper a token with the scope read."""
    counters: Counters = request.app.state.counters
    return Response(counters.text(), media_type=CONTENT_TYPE)
