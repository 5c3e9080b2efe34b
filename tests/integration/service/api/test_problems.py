"""Refusals of uploads, ranges and malformed requests have codes, by which the dashboard says them in its language."""

from typing import Any

from tests.support.live import Live
from tests.support.plane import sha256

JOBS, SNAPSHOTS = "/api/v1/jobs", "/api/v1/snapshots"
COMMAND = {"name": "x", "command": ["true"]}


def sweep(parameter: str, **recipe: Any) -> dict[str, Any]:
    return {"name": "x", "recipe": recipe, "sweep": {"parameters": {parameter: ["a", "b"]}}}


CUSTOM = {"name": "custom", "target": "my:thing", "options": {"width": 8}}
FILE = {"path": "a.py", "size": 1, "sha256": sha256(b"a")}


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("address-nul", {"url": f"{JOBS}?q=%00"}),
    ("host-unknown", {"url": JOBS, "headers": {"Host": "elsewhere.test"}}),
    ("list-offset", {"url": f"{JOBS}?offset=1000000"}),
    ("no-topic", {"url": "/api/v1/live?topic=weather"}),
    ("key-form", {"url": JOBS, "json": COMMAND, "headers": {"Idempotency-Key": "k" * 300}}),
    ("json-constant", {"url": JOBS, "content": '{"name": NaN}'}),
    ("body-size", {"url": JOBS, "content": b"x" * 2**21}),
    ("command-processes", {"url": JOBS, "json": {"command": ["torchrun", "--nproc-per-node=2", "t.py"]}}),
    ("command-nodes", {"url": JOBS, "json": {"command": ["torchrun", "--nnodes=2", "t.py"]}}),
    ("found-often", {"url": JOBS, "json": sweep("width", model=CUSTOM, data=CUSTOM)}),
    ("similar-key", {"url": JOBS, "json": sweep("epoch")}),
    ("no-key", {"url": JOBS, "json": sweep("zzzzzz")}),
    ("similar-path", {"url": JOBS, "json": sweep("recipe.epoch")}),
    ("no-path", {"url": JOBS, "json": sweep("zzzzzz.zzzzzz")}),
    ("no-files", {"url": SNAPSHOTS, "json": {"files": []}}),
    ("bad-path", {"url": SNAPSHOTS, "json": {"files": [{**FILE, "path": "/a"}]}}),
    ("no-hash", {"url": SNAPSHOTS, "json": {"files": [{**FILE, "sha256": "a"}]}}),
    ("large-code", {"url": SNAPSHOTS, "json": {"files": [{**FILE, "size": 2**50}]}}),
    ("many-files", {"url": SNAPSHOTS, "json": {"files": [FILE] * 20_001}}),
]


def test_refusals_have_codes(live_service: Live) -> None:
    found = []
    for _, asked in REFUSED:
        method = "POST" if {"json", "content"} & set(asked) else "GET"
        problem = live_service.client.request(method, **asked).json()
        found.append(problem["code"] or problem["errors"][0]["code"])
    assert found == [code for code, _ in REFUSED]


def test_the_methods_that_an_address_has_are_named(live_service: Live) -> None:
    refused = live_service.client.put("/api/v1/jobs")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, POST")
    assert refused.json()["detail"] == "Take GET or POST: this address has no other method."


def test_a_fault_of_a_path_is_a_message_within_another(live_service: Live) -> None:
    files = [{**FILE, "path": "a//b.py"}]
    problem = live_service.client.post(SNAPSHOTS, json={"files": files}).json()
    assert problem["detail"] == "files: 'a//b.py' is not normalised: write 'a/b.py'"
    why = {"message": "is not normalised: write 'a/b.py'", "code": "path-normal", "params": {"written": "a/b.py"}}
    assert problem["params"] == {"field": "files", "path": "a//b.py", "why": why}
