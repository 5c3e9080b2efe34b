"""Base of the client's calls: typed answers, and lists page by page."""

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import pydantic

from torchyard import ids
from torchyard.client.connection import Connection
from torchyard.exceptions import SpecWarning
from torchyard.spec import ALL
from torchyard.translatable import TranslatableText

if TYPE_CHECKING:
    from torchyard.spec import JobSpec

Item = TypeVar("Item", bound=pydantic.BaseModel)
PAGE = 200


class Calls:
    """Requests over one connection."""

    connection: Connection

    def _get(self, model: type[Item], path: str, params: Mapping[str, Any] | None = None) -> Item:
        return model.model_validate_json(self.connection.request("GET", path, params=params).content)

    def _post(self, model: type[Item], path: str, body: Any = None, *, retry: bool = True) -> Item:
        return self._answer(model, "POST", path, body, retry=retry)

    def _answer(
        self,
        model: type[Item],
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        retry: bool = True,
        timeout_s: float | None = None,
    ) -> Item:
        """Send a body and read the answer; with `retry` it is repeated on a broken connection."""
        answer = self.connection.request(
            method, path, json=body, params=params, headers=headers, retry=retry, timeout_s=timeout_s
        )
        return model.model_validate_json(answer.content)

    def _send(self, method: str, path: str, body: Any = None) -> None:
        """Send a body, or none, for which there is no answer to read; repeated on a broken connection."""
        self.connection.request(method, path, json=body)

    def _delete(self, path: str) -> None:
        """Remove what is at a path; repeated on a broken connection, and done if an earlier try did it."""
        self.connection.delete(path)

    def _analysed(self, spec: "JobSpec | Mapping[str, Any]", *, stacklevel: int) -> tuple[dict[str, Any], str]:
        """A spec as it is sent, with the launcher that its scripts ask for, and why; mistakes are warned of."""
        from torchyard.analysis import analyse

        if isinstance(spec, Mapping) and spec.get("live") and _wants_all(spec):
            spec = {**spec, "resources": {**spec["resources"], "gpus": self.all_gpus(spec)}}
        found = analyse.of_live(spec)
        told = analyse.credential_warnings(body_of(spec).get("env")) if found is None else found.warnings
        for each in told:
            warnings.warn(each, SpecWarning, stacklevel=stacklevel)
        if found is None:
            return body_of(spec), ""
        decided = found.spec.model_dump(mode="json", include={"launcher", "command"}, exclude_none=True)
        return body_of(spec) | decided, found.launcher_reason

    def all_gpus(self, spec: Mapping[str, Any]) -> int:
        """The number that `resources.gpus: all` of a spec stands for on this box, by its other resources and quotas.

        Raises RefusedError, with the mend, where no number would let it start.
        """
        asked = {"command": ["true"], "launcher": "none", "resources": spec["resources"]}
        asked |= {"project": spec["project"]} if "project" in spec else {}
        answer = self.connection.request("POST", "/jobs", json=asked, params={"dry_run": "true"})
        return int(json.loads(answer.content)["spec"]["resources"]["gpus"])

    def _submit(
        self, model: type[Item], body: Mapping[str, Any], reason: str, key: str | None, timeout_s: float | None = None
    ) -> Item:
        headers = {"Idempotency-Key": key or ids.new_id("key")}
        params = _because(reason)
        return self._answer(model, "POST", "/jobs", body, headers=headers, params=params, timeout_s=timeout_s)

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


def _because(reason: str) -> dict[str, str]:
    """Return the query for a launcher's reason, with its code and subject if it has them.

    No other names: a service refuses those that it does not know, and one that does not know these ignores all.
    """
    query = {"launcher_reason": str(reason)} if reason else {}
    if isinstance(reason, TranslatableText):
        query |= {"launcher_reason_code": reason.code}
        if "subject" in reason.params:
            query |= {"launcher_reason_subject": str(reason.params["subject"])}
    return query


def _wants_all(spec: Mapping[str, Any]) -> bool:
    resources = spec.get("resources")
    return isinstance(resources, Mapping) and resources.get("gpus") == ALL


def body_of(spec: "JobSpec | Mapping[str, Any]") -> dict[str, Any]:
    """A spec as it is sent, without sections that nobody has set: an older service may not know them."""
    if isinstance(spec, Mapping):
        return dict(spec)
    return spec.model_dump(mode="json", exclude=set(type(spec).model_fields) - spec.model_fields_set)


def part(name: str) -> str:
    """A name as a part of a path."""
    return quote(str(name), safe="")
