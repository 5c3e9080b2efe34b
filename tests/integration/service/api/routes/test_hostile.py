"""Requests that no client of ours sends: each is a problem that says what is wrong, and nothing is stored."""

import json
from typing import Any

import pytest
from sqlalchemy import func, select

from service.db.models import Job, Token
from tests.support.live import Live
from tests.support.problems import kind
from tests.support.specs import spec

API = "/api/v1"
JSON = {"Content-Type": "application/json"}


def count(live: Live, model: Any) -> int:
    with live.context.db.read() as tx:
        return tx.scalar(select(func.count()).select_from(model)) or 0


@pytest.mark.parametrize(
    "changes",
    [
        {"time_limit": "9" * 400 + "d"},
        {"time_limit": -1},
        {"command": ["a"] * 200_000},
        {"command": "a " * 200_000},
        {"grace": 10**30},
        {"checkpoint": {"every": -1}},
        {"resources": {"gpus": 0, "memory": "9" * 400 + "gib"}},
        {"resources": {"gpus": 0, "cpus": 10**30}},
        {"tags": ["x" * 20_000]},
        {"tags": ["a\0b"]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_values_beyond_all_bounds(live_service: Live, changes: dict[str, Any]) -> None:
    job = live_service.client.post(f"{API}/jobs", json=spec()).json()
    path = f"{API}/jobs/{job['id']}"
    field = next(iter(changes))
    submitted = live_service.client.post(f"{API}/jobs", json=spec(**changes))
    assert kind(submitted) == (422, "invalid-request")
    assert submitted.json()["errors"][0]["field"].startswith(field)
    again = live_service.client.post(f"{path}/rerun", json={"changes": changes})
    assert kind(again) == (422, "invalid-request")
    assert again.json()["errors"][0]["field"].startswith(f"changes.{field}")
    if field in {"time_limit", "tags"}:
        changed = live_service.client.patch(path, json=changes, headers={"If-Match": "*"})
        assert kind(changed) == (422, "invalid-request")
        assert changed.json()["errors"][0]["field"].startswith(field)
    assert count(live_service, Job) == 1


@pytest.mark.parametrize(
    "body",
    [
        '{"changes":' + '{"a":' * 300 + "1" + "}" * 301,
        '{"changes":' + '{"a":' * 5000 + "1" + "}" * 5001,
        '{"changes": {"env": {"A": "\\ud800"}}}',
        '{"changes": {"env": {"\\ud800": "A"}}}',
        '{"changes": {"time_limit": NaN}}',
        '{"from_checkpoint": "a\\u0000b"}',
        "[]",
        "{",
    ],
    ids=["deep", "deeper", "surrogate", "surrogate-name", "nan", "nul", "list", "torn"],
)
def test_reruns_of_nonsense(live_service: Live, body: str) -> None:
    job = live_service.client.post(f"{API}/jobs", json=spec()).json()
    for headers in (JSON, {**JSON, "Idempotency-Key": "k"}):
        answer = live_service.client.post(f"{API}/jobs/{job['id']}/rerun", content=body, headers=headers)
        assert kind(answer) == (422, "invalid-request")
    assert count(live_service, Job) == 1


def test_tokens_and_sessions_of_nonsense(live_service: Live) -> None:
    before = count(live_service, Token)
    for wrong in ({"name": "a\0b"}, {"user": "a\0b"}, {"expires_in": 10**12}, {"expires_in": "9" * 400 + "d"}):
        answer = live_service.client.post(f"{API}/tokens", json={"name": "x", "scopes": ["read"], **wrong})
        assert kind(answer) == (422, "invalid-request")
        assert answer.json()["errors"][0]["field"] == next(iter(wrong))
    content = '{"name": "\\ud800", "scopes": ["read"]}'
    assert kind(live_service.client.post(f"{API}/tokens", content=content, headers=JSON)) == (422, "invalid-request")
    for field in ("token", "code"):
        answer = live_service.anonymous.post(f"{API}/session", content=f'{{"{field}": "\\ud800"}}', headers=JSON)
        assert kind(answer) == (401, "unauthorized")
    assert count(live_service, Token) == before


NONSENSE = [
    ("PUT", "/quotas/user/*", '{"weight": NaN}'),
    ("PUT", "/quotas/user/*", '{"max_gpu_hours": 1e400}'),
    ("PUT", "/quotas/user/*", '{"max_gpus": ' + "9" * 5000 + "}"),
    ("PUT", "/quotas/user/*", "[]"),
    ("PUT", "/policy", '{"half_life": ' + "9" * 5000 + "}"),
    ("PUT", "/policy", '{"order": {}}'),
    ("PUT", "/policy", "null"),
    ("POST", "/reservations", '{"name": "\\ud800", "gpus": 1, "ends_at": "2090-01-01T00:00:00Z"}'),
    ("POST", "/reservations", '{"name": "x", "users": ["a/b"], "gpus": 1, "ends_at": "2090-01-01T00:00:00Z"}'),
    ("POST", "/reservations", '{"name": "x", "users": ["a"], "gpus": 1, "ends_at": 1e300}'),
    ("POST", "/reservations", '{"name": "x", "users": "\\ud800", "gpus": 1, "ends_at": "2090-01-01T00:00:00Z"}'),
    ("PATCH", "/users/x", '{"unix_user": "\\u0000"}'),
]


def test_sharing_of_nonsense(live_service: Live) -> None:
    for method, path, body in NONSENSE:
        answer = live_service.client.request(method, API + path, content=body, headers=JSON)
        assert kind(answer) == (422, "invalid-request"), body


def test_json_that_is_not_said_to_be_json(live_service: Live) -> None:
    for headers in ({}, {"Content-Type": "application/x-www-form-urlencoded"}):  # curl -d says the latter
        answer = live_service.client.put(f"{API}/pause", content='{"message": "x"}', headers=headers)
        assert kind(answer) == (415, "unsupported-media-type")
        assert "send application/json" in answer.json()["detail"]


def test_a_body_that_is_no_mapping_or_too_deep(live_service: Live) -> None:
    for body, message in (("[]", "must be a mapping of fields"), ("[" * 100_000, "is nested too deeply")):
        answer = live_service.client.put(f"{API}/announcement", content=body, headers=JSON)
        assert kind(answer) == (422, "invalid-request")
        assert answer.json()["errors"][0]["field"] == "(body)"
        assert answer.json()["errors"][0]["message"].startswith(message)


def test_a_parameter_that_is_not_read(live_service: Live) -> None:
    dry = live_service.client.post(f"{API}/jobs", params={"dryrun": "true"}, json=spec())
    assert kind(dry) == (422, "invalid-request")
    assert dry.json()["detail"] == "dryrun: unknown field; did you mean dry_run?"
    assert count(live_service, Job) == 0
    filtered = live_service.client.get(f"{API}/jobs", params={"usr": "ada"})
    assert kind(filtered) == (422, "invalid-request")
    assert live_service.client.get(f"{API}/nodes", params={"limit": "500"}).is_success  # a list of one page
    # Providers of sign-in add parameters of their own.
    assert live_service.anonymous.get(f"{API}/session/ways", params={"iss": "x"}).is_success


def test_a_field_that_is_not_read_removes_no_code(live_service: Live) -> None:
    answer = live_service.client.post(f"{API}/snapshots/prune", json={"dry_run": True})
    assert kind(answer) == (422, "invalid-request")
    assert [each["field"] for each in answer.json()["errors"]] == ["dry_run"]


def test_ranges_that_no_column_holds(live_service: Live) -> None:
    job = live_service.client.post(f"{API}/jobs", json=spec()).json()["id"]
    wide = {"start": "-1e308", "end": "1e308"}
    for path in (f"/jobs/{job}/metrics", "/metrics/curves", f"/jobs/{job}/telemetry"):
        asked = {"jobs": job, "names": "loss"} if path == "/metrics/curves" else {}
        for axis in ({}, {"axis": "time"}) if path != f"/jobs/{job}/telemetry" else ({},):
            assert live_service.client.get(f"{API}{path}", params={**wide, **asked, **axis}).is_success


def test_headers_of_nonsense(live_service: Live) -> None:
    job = live_service.client.post(f"{API}/jobs", json=spec()).json()
    stream = f"{API}/jobs/{job['id']}/logs/stream"
    for event_id in (f"{10**20}:0", f"1:{10**20}", ":", "1:", "x:1"):
        answer = live_service.client.get(stream, headers={"Last-Event-ID": event_id})
        assert kind(answer) == (422, "invalid-request")
    for origin in ("http://[", "http://[::1", "null", "http://evil.example"):
        answer = live_service.client.post(f"{API}/projects", json={"name": "x"}, headers={"Origin": origin})
        assert kind(answer) == (403, "forbidden")


def test_a_long_body_without_a_length_is_refused(live_service: Live) -> None:
    for path, limit in (("/jobs", 2**20), ("/users", 2**20), ("/snapshots", 2**25)):
        pieces = (b" " * 65_536 for _ in range(limit // 65_536 + 1))
        answer = live_service.client.post(API + path, content=pieces, headers=JSON)
        assert kind(answer) == (413, "payload-too-large")


def test_the_bodies_of_strangers_are_not_read(live_service: Live) -> None:
    for path in ("/jobs", "/users", "/snapshots", "/agent/heartbeat", "/nothing"):
        answer = live_service.anonymous.post(API + path, content="{", headers=JSON)
        assert kind(answer) == (401, "unauthorized"), path
    token = json.dumps({"token": "x" * 5000})
    answer = live_service.anonymous.post(f"{API}/session", content=token, headers=JSON)
    assert kind(answer) == (413, "payload-too-large")


def test_a_node_that_sends_what_no_database_holds(live_service: Live) -> None:
    headers = {**JSON, "TorchYard-Protocol": "1"}
    with live_service.as_token(live_service.node_token) as node:
        for attempt in ("a\0b", "\ud800"):
            message = {"samples": [{"time_us": 1, "attempt": attempt, "values": {"x": 1.0}}]}
            answer = node.post(f"{API}/agent/samples", content=json.dumps(message), headers=headers)
            assert answer.status_code in {204, 422}
