"""JSON responses that are polled: written once, with an ETag that is compared before the work is done."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel

from service.infra.etags import Tagged, names

JSON = "application/json"
#: Description of a route that also answers with a table.
CSV_RESPONSE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}


def not_modified(request: Request, tag: str) -> Response | None:
    """The 304 for a client that has this version already."""
    return _same(tag) if names(known_tags(request), tag) else None


def known_tags(request: Request) -> str | None:
    """Tags of the versions that the client has: the header If-None-Match."""
    return request.headers.get("if-none-match")


def _same(tag: str) -> Response:
    return Response(status_code=304, headers={"ETag": tag})


def tagged(found: Tagged[Any], status: int = 200) -> Response:
    """A JSON answer with its ETag; the 304 where there is no body."""
    return _same(found.tag) if found.body is None else answer(found.body, tag=found.tag, status=status)


def answer(
    body: BaseModel | Sequence[BaseModel] | bytes,
    *,
    tag: str | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A JSON answer, written straight from its model unless it is written already."""
    made = Response(_written(body), status, dict(headers or {}), JSON)
    if tag is not None:
        made.headers["ETag"] = tag
    return made


def _written(body: BaseModel | Sequence[BaseModel] | bytes) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, BaseModel):
        return body.__pydantic_serializer__.to_json(body)
    return b"[" + b",".join(item.__pydantic_serializer__.to_json(item) for item in body) + b"]"


def object_answer(body: Mapping[str, Any]) -> Response:
    """A JSON answer without a model, such as health."""
    return Response(json.dumps(body), media_type=JSON)
