"""Errors as ``application/problem+json``: one exception for all routes, and the handlers that present it."""

import errno
import json
import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from pydantic_core import ErrorDetails
from sqlalchemy.exc import DataError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException

from torchyard import mistakes, problems
from torchyard.api import FieldProblem

MEDIA_TYPE = "application/problem+json"
DATABASE_AWAY = "The database does not answer now: try again in a moment."
DATABASE_BUSY = "The database is busy: something else has held its lock for seconds, try again in a moment."
DISK_FULL = "The service's disk is full: free space where its database and its artifacts lie."
#: SQLSTATEs of PostgreSQL: `disk_full`, `lock_not_available`.
_PG_FULL, _PG_LOCKED = "53100", "55P03"
_SQLITE_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
RETRY_AFTER = {429: "1", 503: "2"}

logger = logging.getLogger(__name__)


class ProblemError(Exception):
    """A request that cannot be answered: `kind` is one of `torchyard.problems.KINDS`, `detail` names the mend."""

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})


def field_problem(field: str, message: str) -> ProblemError:
    """A request with one wrong field."""
    return ProblemError("invalid-request", f"{field}: {message}", errors=[FieldProblem(field=field, message=message)])


def not_found(what: str, name: object) -> ProblemError:
    """Something that does not exist, or not any more."""
    return ProblemError("not-found", f"There is no {what} {str(name)[:100]!r}.")


def of_database(error: Exception) -> ProblemError:
    """What a failure of the database means: no space, a lock that somebody else keeps, or that it is away."""
    origin = getattr(error, "orig", None)
    state, code = getattr(origin, "sqlstate", None), getattr(origin, "sqlite_errorcode", 0) & 0xFF
    if state == _PG_FULL or code == sqlite3.SQLITE_FULL:
        return ProblemError("insufficient-storage", DISK_FULL)
    if state == _PG_LOCKED or code in _SQLITE_LOCKED:
        return ProblemError("unavailable", DATABASE_BUSY)
    return ProblemError("unavailable", DATABASE_AWAY)


def body(error: ProblemError) -> dict[str, Any]:
    """The problem as it travels (RFC 9457)."""
    kind = problems.KINDS[error.kind]
    return {
        "type": problems.type_uri(error.kind),
        "title": kind.title,
        "status": kind.status,
        "detail": error.detail,
        "errors": [field.model_dump() for field in error.errors],
    }


def response(error: ProblemError) -> Response:
    """The answer to a request that ended in a problem."""
    status = problems.KINDS[error.kind].status
    headers = dict(error.headers)
    if status in RETRY_AFTER:
        headers.setdefault("Retry-After", RETRY_AFTER[status])
    if status == 401:
        headers.setdefault("WWW-Authenticate", "Bearer")
    return Response(json.dumps(body(error)), status, headers, MEDIA_TYPE)


def field_problems(
    errors: Iterable[ErrorDetails], model: type[BaseModel] | None = None, prefix: str = ""
) -> list[FieldProblem]:
    """Pydantic's errors with dotted field names; unknown fields get the nearest name that `model` has."""
    return [
        FieldProblem(
            field=".".join(filter(None, (prefix, *map(str, error["loc"])))) or "(body)",
            message=mistakes.message(error, model),
        )
        for error in errors
    ]


def invalid(errors: Sequence[FieldProblem]) -> ProblemError:
    """A request with wrong fields; the detail is readable without the list."""
    shown = "; ".join(f"{error.field}: {error.message}" for error in errors[:3])
    more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
    return ProblemError("invalid-request", shown + more, errors=errors)


def _from_validation(error: RequestValidationError) -> ProblemError:
    return invalid([_request_field(details) for details in error.errors()])


def _request_field(details: ErrorDetails) -> FieldProblem:
    if details["type"] == "json_invalid":
        return FieldProblem(field="(body)", message=f"not valid JSON: {details.get('ctx', {}).get('error', '')}")
    place, *rest = details["loc"]
    field = ".".join(map(str, rest)) or ("(body)" if place == "body" else str(place))
    return FieldProblem(field=field, message=mistakes.message(details, None))


def _from_http(error: HTTPException) -> ProblemError:
    kind = problems.kind_for_status(error.status_code)
    return ProblemError(kind, str(error.detail), headers=error.headers)


def install(app: FastAPI) -> None:
    """Makes every error of the application a problem."""

    @app.exception_handler(ProblemError)
    async def _problem(_request: Request, error: ProblemError) -> Response:
        return response(error)

    @app.exception_handler(RequestValidationError)
    async def _validation(_request: Request, error: RequestValidationError) -> Response:
        return response(_from_validation(error))

    @app.exception_handler(HTTPException)
    async def _http(_request: Request, error: HTTPException) -> Response:
        return response(_from_http(error))

    _install_outer(app)

    @app.exception_handler(DataError)
    async def _data(_request: Request, _error: DataError) -> Response:
        return response(
            ProblemError("invalid-request", "Texts must not contain NUL, and numbers must fit into 64 bits.")
        )

    @app.exception_handler(Exception)
    async def _internal(request: Request, error: Exception) -> Response:
        logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return response(ProblemError("internal", "The service failed; its log says why."))


def _install_outer(app: FastAPI) -> None:
    """What is no fault of the request: the database is away, the disk is full."""

    @app.exception_handler(OperationalError)
    @app.exception_handler(PoolTimeoutError)
    async def _database(request: Request, error: Exception) -> Response:
        logger.warning("%s %s: the database does not answer: %s", request.method, request.url.path, error)
        return response(of_database(error))

    @app.exception_handler(OSError)
    async def _disk(request: Request, error: OSError) -> Response:
        if error.errno not in _FULL:
            raise error
        logger.warning("%s %s: the disk is full: %s", request.method, request.url.path, error)
        return response(ProblemError("insufficient-storage", DISK_FULL))
