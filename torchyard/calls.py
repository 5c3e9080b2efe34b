"""What all parts of the client are made of: typed answers, and lists page by page."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import pydantic

from torchyard.connection import Connection
from torchyard.spec import JobSpec

Item = TypeVar("Item", bound=pydantic.BaseModel)
PAGE = 200


class Calls:
    """Requests over one connection."""

    connection: Connection

    def _get(self, model: type[Item], path: str, params: Mapping[str, Any] | None = None) -> Item:
        return model.model_validate_json(self.connection.request("GET", path, params=params).content)

    def _post(self, model: type[Item], path: str, body: Any = None, *, retry: bool = True) -> Item:
        return model.model_validate_json(self.connection.request("POST", path, json=body, retry=retry).content)

    def _pages(
        self, model: type[Item], path: str, filters: Mapping[str, Any], limit: int | None = None
    ) -> Iterator[Item]:
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            params = {**filters, "cursor": cursor, "limit": min(left or PAGE, PAGE)}
            body = json.loads(self.connection.request("GET", path, params=params).content)
            items, cursor = (body["items"], body.get("next")) if isinstance(body, dict) else (body, None)
            for item in items[:left]:
                yield model.model_validate(item)
            left = None if left is None else left - len(items)
            if cursor is None:
                return


def body_of(spec: JobSpec | Mapping[str, Any]) -> dict[str, Any]:
    """A spec as it is sent."""
    return spec.model_dump(mode="json") if isinstance(spec, JobSpec) else dict(spec)


def part(name: str) -> str:
    """A name as a part of a path."""
    return quote(str(name), safe="")
