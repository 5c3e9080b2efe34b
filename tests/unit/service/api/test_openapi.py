"""``openapi.json`` is what the code answers, and nothing that programs rely on goes away."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scripts.openapi import FILE, breaking
from service.api import openapi
from service.app import bare
from torchyard import problems

COMMITTED: dict[str, Any] = json.loads(FILE.read_text())


@pytest.fixture(scope="module")
def current() -> dict[str, Any]:
    return openapi.describe(bare())


def test_nothing_that_programs_rely_on_has_gone(current: dict[str, Any]) -> None:
    assert breaking(COMMITTED, current) == []


def test_the_file_is_what_the_code_answers() -> None:
    assert openapi.text(bare()) == FILE.read_text(), "run: python -m scripts.openapi"


def test_it_is_openapi_3_1_with_unique_names(current: dict[str, Any]) -> None:
    assert current["openapi"].startswith("3.1")
    operations = [operation for item in current["paths"].values() for operation in item.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    for schema in current["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_every_reference_leads_somewhere(current: dict[str, Any]) -> None:
    text = json.dumps(current)
    names = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(current["components"]["schemas"])


def test_generators_of_clients_can_name_and_fill_in_every_schema(current: dict[str, Any]) -> None:
    """As openapi-python-client does, which leaves out a model that it cannot make, and all that has it."""
    schemas = current["components"]["schemas"]
    fields = [(name, field) for name, schema in schemas.items() for field in schema.get("properties", {}).values()]
    made = {name + field["title"].title().replace(" ", "") for name, field in fields if field.get("type") == "object"}
    assert not made & set(schemas)
    assert not [(name, field) for name, field in fields if "anyOf" in field and isinstance(field.get("default"), dict)]


def test_what_needs_no_token_says_so(current: dict[str, Any]) -> None:
    operations = [operation for item in current["paths"].values() for operation in item.values()]
    assert current["security"] == [{"token": []}]
    assert sorted(each["operationId"] for each in operations if each.get("security") == []) == [
        "health_healthz",
        "health_readyz",
        "session_begin_oidc",
        "session_end_oidc",
        "session_list_ways",
        "session_sign_in",
        "shared_show_metrics",
        "shared_show_run",
    ]


def test_files_are_bytes_in_both_directions(current: dict[str, Any]) -> None:
    upload = current["paths"]["/api/v1/snapshots/{snapshot_id}/blobs/{sha256}"]["put"]["requestBody"]
    downloads = [
        answer["content"][openapi.FILE]
        for item in current["paths"].values()
        for answer in item.get("get", {"responses": {}})["responses"].values()
        if openapi.FILE in answer.get("content", {})
    ]
    assert upload["required"]
    assert len(downloads) == 3
    for body in [upload["content"][openapi.FILE], *downloads]:
        assert body["schema"] == {"type": "string", "format": "binary"}


def test_agents_have_no_place_in_it(current: dict[str, Any]) -> None:
    assert not [path for path in current["paths"] if "/agent/" in path]


Change = Callable[[dict[str, Any]], object]


def _schemas(description: dict[str, Any]) -> dict[str, Any]:
    return dict(description["components"]["schemas"])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: d["paths"].pop("/api/v1/jobs"), "GET /api/v1/jobs is gone"),
        (lambda d: d["paths"]["/api/v1/jobs"].pop("post"), "POST /api/v1/jobs is gone"),
        (lambda d: d["paths"]["/api/v1/jobs"]["get"]["parameters"].clear(), "parameter query cursor is gone"),
        (lambda d: _schemas(d)["Job"]["properties"].pop("state"), "Job.state is gone"),
        (lambda d: _schemas(d)["JobState"]["enum"].remove("queued"), "JobState: the value 'queued' is gone"),
        (lambda d: _schemas(d)["JobSpec"].setdefault("required", []).append("name"), "JobSpec.name is required now"),
        (lambda d: _schemas(d)["Job"]["required"].remove("id"), "Job.id may be absent now"),
        (lambda d: _schemas(d)["Job"]["properties"]["number"].update(type="string"), "Job.number is of another type"),
        (lambda d: d["paths"]["/api/v1/jobs"]["post"]["responses"].pop("201"), "answer 201 is gone"),
    ],
)
def test_what_breaks_programs_is_found(change: Change, complaint: str) -> None:
    changed = copy.deepcopy(COMMITTED)
    change(changed)
    assert any(complaint in found for found in breaking(COMMITTED, changed))


def test_additions_break_nothing() -> None:
    changed = copy.deepcopy(COMMITTED)
    changed["paths"]["/api/v1/new"] = copy.deepcopy(changed["paths"]["/api/v1/jobs"])
    _schemas(changed)["Job"]["properties"]["new"] = {"type": "string"}
    _schemas(changed)["Job"]["required"].append("new")
    _schemas(changed)["JobSpec"]["properties"]["new"] = {"type": "string"}
    assert breaking(COMMITTED, changed) == []


#: Frozen: a type that programs have seen stays, with its status.
FROZEN = {
    "invalid-request": 422,
    "never-fits": 422,
    "idempotency-mismatch": 422,
    "unauthorized": 401,
    "forbidden": 403,
    "not-found": 404,
    "method-not-allowed": 405,
    "conflict": 409,
    "not-acceptable-state": 409,
    "precondition-failed": 412,
    "payload-too-large": 413,
    "unsupported-media-type": 415,
    "range-not-satisfiable": 416,
    "unknown-host": 421,
    "protocol-mismatch": 426,
    "precondition-required": 428,
    "too-many-requests": 429,
    "internal": 500,
    "unavailable": 503,
    "insufficient-storage": 507,
}


def test_problem_types_are_frozen() -> None:
    assert {kind: problem.status for kind, problem in problems.KINDS.items()} == FROZEN
    for kind in FROZEN:
        assert problems.type_uri(kind) == f"https://torchyard.dev/problems/{kind}"
    with pytest.raises(KeyError):
        problems.type_uri("nothing")
