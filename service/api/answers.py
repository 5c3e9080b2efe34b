"""JSON responses that are polled: written once, with an ETag that is compared before the work is done."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel

from service.infra.etags import names

JSON = "application/json"


def not_modified(request: Request, tag: str) -> Response | None:
    """The 304 for a client that has this version already."""
    header = request.headers.get("if-none-match")
    if header is None or not names(header, tag):
        return None
    return Response(status_code=304, headers={"ETag": tag})


def answer(
    body: BaseModel | Sequence[BaseModel],
    *,
    tag: str | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A JSON answer, written straight from its model."""
    made = Response(_written(body), status, dict(headers or {}), JSON)
    if tag is not None:
        made.headers["ETag"] = tag
    return made


def _written(body: BaseModel | Sequence[BaseModel]) -> bytes:
    if isinstance(body, BaseModel):
        return body.__pydantic_serializer__.to_json(body)
    return b"[" + b",".join(item.__pydantic_serializer__.to_json(item) for item in body) + b"]"


def object_answer(body: Mapping[str, Any]) -> Response:
    """A JSON answer without a model, such as health."""
    return Response(json.dumps(body), media_type=JSON)
