"""The description of the API: OpenAPI 3.1, in a stable order, with the models that routes read by themselves.

The first sentence of a route's docstring is its summary, the rest its description.
"""

import json
import re
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from service.api import auth
from torchyard.api import Problem
from torchyard.spec import JobSpec

REF = "#/components/schemas/{model}"
_PROBLEM = "application/problem+json"
#: Media type and schema of a file's bytes.
FILE = "application/octet-stream"
BYTES = {"type": "string", "format": "binary"}


def operation_id(route: APIRoute) -> str:
    """``jobs_submit`` for `submit` in the module of jobs: stable, and short enough to read in generated code."""
    return f"{route.endpoint.__module__.rpartition('.')[2]}_{route.name}"


def reference(model: str) -> dict[str, str]:
    """A reference to a schema among the components."""
    return {"$ref": REF.format(model=model)}


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Descriptions of a route's problems."""
    content = {_PROBLEM: {"schema": reference(Problem.__name__)}}
    return {status: {"description": "Problem", "content": content} for status in statuses}


def _schemas(model: Any) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template=REF)
    return {**schema.pop("$defs", {}), model.__name__: schema}


def describe(app: FastAPI) -> dict[str, Any]:
    """The whole description, as ``/openapi.json`` answers it."""
    made = get_openapi(title=app.title, version=app.version, routes=app.routes, description=app.description)
    components = made.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for model in (JobSpec, Problem):
        schemas.update(_schemas(model))
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    made["security"] = [{"token": []}]
    made["paths"] = {path: _described(item) for path, item in sorted(made["paths"].items())}
    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    free = {route.unique_id for route in routes if not auth.needs_token(route.dependant)}
    for operation in (each for item in made["paths"].values() for each in item.values()):
        if operation["operationId"] in free:
            operation["security"] = []
    return made


def _described(item: dict[str, Any]) -> dict[str, Any]:
    """A path whose operations answer 422 with a problem, as all our errors are, with summaries and examples."""
    for operation in item.values():
        operation["responses"].pop("422", None)
        operation["responses"]["default"] = problem_responses(500)[500]
        _summarize(operation)
        _illustrate(operation)
    return item


def _summarize(operation: dict[str, Any]) -> None:
    """Make the first sentence of the description the summary."""
    summary, _, rest = f"{operation.pop('description')} ".replace("\n", " \n").partition(". ")
    operation["summary"] = re.sub(r"\s+", " ", summary).rstrip(". ")
    if rest.strip():
        operation["description"] = rest.replace(" \n", "\n").strip()


def _illustrate(operation: dict[str, Any]) -> None:
    """Add examples of the bodies that it takes and answers."""
    # Made only for a description, since a tenth of the time in which the service starts would go into them.
    from service.api import examples

    for body in (
        each["content"][_PROBLEM] for each in operation["responses"].values() if _PROBLEM in each.get("content", {})
    ):
        body["example"] = examples.PROBLEM
    for media, body in operation.get("requestBody", {}).get("content", {}).items():
        body["examples"] = examples.requests(media, body["schema"])
    name, answer = operation["operationId"], next(iter(operation["responses"].values()))
    content = {media: body for media, body in answer.pop("content", {}).items() if body.get("schema")}
    for media, text in examples.TEXTS.get(name, {}).items():
        kind = {"type": "object" if isinstance(text, dict) else "string"}
        content[media] = {"schema": BYTES if media == FILE else kind, "example": text}
    for body in content.values():
        if "example" not in body:
            body["example"] = examples.response(name, body["schema"])
    if content:
        answer["content"] = content


def text(app: FastAPI) -> str:
    """The description as the file in the repository has it."""
    return json.dumps(describe(app), indent=1, ensure_ascii=False) + "\n"
