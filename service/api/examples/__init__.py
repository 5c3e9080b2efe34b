"""Examples for the description of the API, as real instances of its models: one of each, for all operations that take
or answer it.
"""

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel

from service.api.examples import jobs, nodes, people, sharing, telemetry

#: By the name of the model.
MODELS: Mapping[str, BaseModel] = {
    type(example).__name__: example for module in (jobs, nodes, people, sharing, telemetry) for example in module.MODELS
}
#: Answers of operations that leave a resource in another state, by operation.
ANSWERS: Mapping[str, BaseModel] = {**jobs.ANSWERS, **nodes.ANSWERS}
#: Answers without a model, by operation and media type.
TEXTS: Mapping[str, Mapping[str, Any]] = {**jobs.TEXTS, **telemetry.TEXTS, **people.TEXTS, **sharing.TEXTS}
PROBLEM = jobs.PROBLEM.model_dump(mode="json")


def requests(media: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Bodies that an operation takes, by what they show; fields at their defaults are left out."""
    if media == "application/octet-stream":
        return {"example": {"value": jobs.FILE}}
    name = _model(schema)
    if name == "SecretValue":  # which never writes its value out
        return {"example": {"value": {"value": people.SECRET}}}
    found = jobs.SPECS if name == "JobSpec" else {"example": MODELS[name]}
    written = {title: each.model_dump(mode="json", exclude_unset=True) for title, each in found.items()}
    if media == "application/yaml":
        return {title: {"value": yaml.safe_dump(each, sort_keys=False)} for title, each in written.items()}
    return {title: {"value": each} for title, each in written.items()}


def response(operation: str, schema: Mapping[str, Any]) -> Any:
    """Body that an operation answers with: a model, or a list or page of it."""
    if operation in ANSWERS:
        return _written(ANSWERS[operation])
    if schema.get("type") == "array":
        return [_written(MODELS[_model(schema["items"])])]
    name = _model(schema)
    if name.startswith("Page_"):
        return {"items": [_written(MODELS[name[5:-1]])], "next": None}
    return _written(MODELS[name])


def _model(schema: Mapping[str, Any]) -> str:
    """The name of a schema's model, of the first where it is one of several."""
    reference: str = schema["anyOf"][0]["$ref"] if "anyOf" in schema else schema["$ref"]
    return reference.rpartition("/")[2]


def _written(example: BaseModel) -> Any:
    return example.model_dump(mode="json")
