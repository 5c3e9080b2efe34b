"""Each operation of the API is explained, with examples that its models take, and so is each field of its schemas."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel, TypeAdapter

from service.api import examples, openapi
from service.app import bare
from torchyard.spec import JobSpec

#: Longest summary, as a list of operations shows it on one line.
LINE = 80


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return openapi.describe(bare())


def operations(description: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in description["paths"].items():
        yield from ((f"{method.upper()} {path}", operation) for method, operation in methods.items())


def bodies(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Media types with their contents: of the request, and of the answer where nothing went wrong."""
    yield from operation.get("requestBody", {}).get("content", {}).items()
    yield from next(iter(operation["responses"].values())).get("content", {}).items()


def values(body: dict[str, Any]) -> list[Any]:
    if "example" in body:
        return [body["example"]]
    return [each["value"] for each in body.get("examples", {}).values()]


def test_every_summary_is_a_short_sentence(description: dict[str, Any]) -> None:
    wrong = [
        summary
        for _, operation in operations(description)
        for summary in [operation["summary"]]
        if len(summary) > LINE or summary.count(" ") < 2 or summary.istitle() or not summary[0].isupper()
    ]
    assert wrong == []


def test_no_two_operations_have_one_summary(description: dict[str, Any]) -> None:
    summaries = [operation["summary"] for _, operation in operations(description)]
    assert len(summaries) == len(set(summaries))


def test_every_parameter_is_described(description: dict[str, Any]) -> None:
    wrong = [
        (name, parameter["name"])
        for name, operation in operations(description)
        for parameter in operation.get("parameters", [])
        if not parameter.get("description")
    ]
    assert wrong == []


def test_every_property_is_described(description: dict[str, Any]) -> None:
    wrong = [
        (name, field)
        for name, schema in description["components"]["schemas"].items()
        for field, declared in schema.get("properties", {}).items()
        if not declared.get("description")
    ]
    assert wrong == []


def test_every_body_has_an_example(description: dict[str, Any]) -> None:
    wrong = [
        (name, media)
        for name, operation in operations(description)
        for media, body in bodies(operation)
        if not values(body)
    ]
    assert wrong == []


def test_only_answers_without_a_body_have_no_example(description: dict[str, Any]) -> None:
    without = {
        status
        for _, operation in operations(description)
        for status, answer in itertools.islice(operation["responses"].items(), 1)
        if not answer.get("content")
    }
    assert without == {"204", "302"}


def test_every_example_fits_its_schema(description: dict[str, Any]) -> None:
    components = {"components": description["components"]}
    for name, operation in operations(description):
        for media, body in bodies(operation):
            for value in values(body):
                found = yaml.safe_load(value) if media == "application/yaml" else value
                problems = list(Draft202012Validator({**components, **body["schema"]}).iter_errors(found))
                assert problems == [], (name, media, problems)


@pytest.mark.parametrize(
    "example", [*examples.MODELS.values(), *examples.ANSWERS.values()], ids=lambda each: type(each).__name__
)
def test_models_take_their_examples(example: BaseModel) -> None:
    written = example.model_dump_json()
    assert TypeAdapter(type(example)).validate_json(written) == example


def test_the_service_takes_the_specs_of_submissions(description: dict[str, Any]) -> None:
    content = description["paths"]["/api/v1/jobs"]["post"]["requestBody"]["content"]
    taken = [JobSpec.model_validate(value) for value in values(content["application/json"])]
    assert taken == list(examples.jobs.SPECS.values())
    assert [yaml.safe_load(value) for value in values(content["application/yaml"])] == values(
        content["application/json"]
    )


def test_no_example_is_left_over(description: dict[str, Any]) -> None:
    names = {operation["operationId"] for _, operation in operations(description)}
    assert set(examples.ANSWERS) | set(examples.TEXTS) <= names
    assert set(examples.MODELS) <= set(description["components"]["schemas"])


def test_a_refusal_has_an_example(description: dict[str, Any]) -> None:
    for _, operation in operations(description):
        assert operation["responses"]["default"]["content"]["application/problem+json"]["example"] == examples.PROBLEM
