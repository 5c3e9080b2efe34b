"""Errors as ``application/problem+json`` (RFC 9457), and the handlers that present them."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import ErrorDetails
from sqlalchemy.exc import DataError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route

from service.errors import DISK_FULL, ProblemError, field_problem, invalid, of_database
from service.jobs.body import NESTED, no_mapping
from torchyard import problems
from torchyard.api import FieldProblem
from torchyard.errnos import NO_SPACE
from torchyard.spec import error_messages
from torchyard.translatable import TranslatableText, parts

MEDIA_TYPE = "application/problem+json"

RETRY_AFTER = {429: "1", 503: "2"}


class HttpProblemError(ProblemError):
    """A problem of HTTP itself, whose answer has headers of its own."""

    def __init__(self, kind: str, detail: str, headers: Mapping[str, str] | None) -> None:
        super().__init__(kind, detail)
        self.headers = dict(headers or {})


logger = logging.getLogger(__name__)


def body(error: ProblemError) -> dict[str, Any]:
    """The problem as it travels (RFC 9457)."""
    kind = problems.KINDS[error.kind]
    return {
        "type": problems.type_uri(error.kind),
        "title": kind.title,
        "status": kind.status,
        "detail": error.detail,
        **parts(error.detail),
        "errors": [field.model_dump() for field in error.errors],
    }


def headers_of(error: ProblemError) -> dict[str, str]:
    """The headers of a problem's answer."""
    status = problems.KINDS[error.kind].status
    headers = dict(error.headers) if isinstance(error, HttpProblemError) else {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if status in RETRY_AFTER:
        headers.setdefault("Retry-After", RETRY_AFTER[status])
    if status == 401:
        headers.setdefault("WWW-Authenticate", "Bearer")
    return headers


def response(error: ProblemError) -> Response:
    """The answer to a request that ended in a problem."""
    return Response(json.dumps(body(error)), problems.KINDS[error.kind].status, headers_of(error), MEDIA_TYPE)


def internal() -> ProblemError:
    """The problem of a request that met a fault of the service's own."""
    return ProblemError("internal", TranslatableText("see-log", "The service failed; its log says why."))


def _from_validation(request: Request, error: RequestValidationError) -> ProblemError:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    # What is not said to be JSON is not read, which shows as a body that is no mapping.
    if not _is_json(kind) and any(_is_body(each) and each["type"] != "missing" for each in error.errors()):
        detail = TranslatableText("json-only", "{kind!r} is not read here: send application/json.", kind=kind[:100])
        return ProblemError("unsupported-media-type", detail)
    return invalid([_request_field(details) for details in error.errors()])


def _is_json(kind: str) -> bool:
    return kind.lower() == "application/json" or (kind.lower().startswith("application/") and kind.endswith("+json"))


def _is_body(details: ErrorDetails) -> bool:
    return tuple(details["loc"]) == ("body",)


def _request_field(details: ErrorDetails) -> FieldProblem:
    if details["type"] == "json_invalid":
        why = str(details.get("ctx", {}).get("error", ""))
        return FieldProblem(field="(body)", message=TranslatableText("no-json", "not valid JSON: {why}", why=why))
    if _is_body(details) and details["type"] in ("model_type", "model_attributes_type"):
        return FieldProblem(field="(body)", message=no_mapping(details["input"]))
    place, *rest = details["loc"]
    field = ".".join(map(str, rest)) or ("(body)" if place == "body" else str(place))
    return FieldProblem(field=field, message=error_messages.message(details, None))


def _from_http(request: Request, error: HTTPException) -> ProblemError:
    if isinstance(error.__cause__, RecursionError):
        return field_problem("(body)", NESTED)
    kind = problems.kind_for_status(error.status_code)
    if error.status_code == 405:
        methods = _methods_at(request)
        detail = f"Take {' or '.join(methods)}: this address has no other method."
        return HttpProblemError(kind, detail, {"Allow": ", ".join(methods)})
    return HttpProblemError(kind, error.detail, error.headers)


def _methods_at(request: Request) -> list[str]:
    """Return the methods of all routes that have the path: Starlette itself names those of the first."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    found = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in found for method in route.methods or ()})


def install(app: FastAPI) -> None:
    """Make every error of the application a problem."""

    @app.exception_handler(ProblemError)
    async def _problem(_request: Request, error: ProblemError) -> Response:
        return response(error)

    @app.exception_handler(RequestValidationError)
    async def _validation(request: Request, error: RequestValidationError) -> Response:
        return response(_from_validation(request, error))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        return response(_from_http(request, error))

    _install_outer(app)

    @app.exception_handler(DataError)
    async def _data(_request: Request, _error: DataError) -> Response:
        return response(
            ProblemError(
                "invalid-request",
                TranslatableText("nul-or-numbers", "Texts must not contain NUL, and numbers must fit into 64 bits."),
            )
        )

    @app.exception_handler(Exception)
    async def _internal(request: Request, error: Exception) -> Response:
        logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return response(internal())


def _install_outer(app: FastAPI) -> None:
    """Handle failures of neither request nor service: the client is gone, the database is away, the disk is full."""

    @app.exception_handler(ClientDisconnect)
    async def _gone(request: Request, _error: ClientDisconnect) -> Response:
        logger.info("%s %s: the client hung up before it had sent everything", request.method, request.url.path)
        return Response(status_code=400)  # nobody hears it

    @app.exception_handler(OperationalError)
    @app.exception_handler(PoolTimeoutError)
    async def _database(request: Request, error: Exception) -> Response:
        logger.warning("%s %s: the database does not answer: %s", request.method, request.url.path, error)
        return response(of_database(error))

    @app.exception_handler(OSError)
    async def _disk(request: Request, error: OSError) -> Response:
        if error.errno not in NO_SPACE:
            raise error
        logger.warning("%s %s: the disk is full: %s", request.method, request.url.path, error)
        return response(ProblemError("insufficient-storage", DISK_FULL))
