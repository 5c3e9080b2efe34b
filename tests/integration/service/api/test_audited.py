"""The audit of requests: every route that changes something, everything refused, who and from where."""

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import func, insert, select

from service.api.audited import ACTIONS, AGENT, SAFE_METHODS
from service.app import bare
from service.db import engine
from service.db.models import Audit
from service.identity import audit
from service.identity.refusals import MAX_ENTRIES, MAX_SUBJECTS, OTHERS
from tests.support.live import Live, connect
from tests.support.problems import kind
from tests.support.specs import spec
from tests.support.wait import until
from torchyard.api import PREFIX


def entries(live: Live, **query: Any) -> list[dict[str, Any]]:
    answer = live.client.get(f"{PREFIX}/audit", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def routes() -> Iterator[tuple[str, str]]:
    for route in bare().routes:
        if isinstance(route, APIRoute):
            for method in (route.methods or set()) - SAFE_METHODS:
                yield method, route.path


def member(live: Live, name: str, *scopes: str) -> str:
    """Secret of a token of a new user."""
    assert live.client.post(f"{PREFIX}/users", json={"name": name}).status_code == 201
    made = live.client.post(f"{PREFIX}/tokens", json={"name": "t", "scopes": list(scopes), "user": name})
    return str(made.json()["secret"])


def test_every_route_that_changes_something_has_an_action() -> None:
    found = {(method, path.removeprefix(PREFIX)) for method, path in routes() if not path.startswith(AGENT)}
    assert found == {each for each in ACTIONS if each[0] not in SAFE_METHODS}, (
        "name the action of each route in service/api/audited.py"
    )


def test_what_is_refused_is_recorded_for_every_route(live_service: Live) -> None:
    """Strangers get 401, a token that only reads 403."""
    secret = member(live_service, "rita", "read")
    with live_service.as_token(secret) as reader:
        for method, path in sorted(routes()):
            asked = re.sub(r"{[^}]*}", "x", path)
            for client in (live_service.anonymous, reader):
                client.request(method, asked, content=b"{}", headers={"TorchYard-Protocol": "1"})
    found = {
        (each["user"], each["action"], each["status"]) for each in entries(live_service, result="refused", limit=500)
    }
    own = {"token.create", "token.revoke", "token.rotate", "session.open", "session.close", "session.make-code"}
    changes = set(ACTIONS.values()) - own - {"stream.follow"}
    assert {(audit.UNKNOWN_USER, each, 401) for each in changes | {"agent.report", "stream.follow"}} <= found
    assert {("rita", each, 403) for each in changes | {"agent.report"}} <= found
    assert {each["address"] for each in entries(live_service, result="refused")} == {"127.0.0.1"}


def test_changes_are_recorded_with_what_they_change(live_service: Live) -> None:
    job = live_service.client.post(f"{PREFIX}/jobs", json=spec()).json()["id"]
    assert live_service.client.post(f"{PREFIX}/jobs?dry_run=true", json=spec()).status_code == 200
    for word in ("hold", "release", "cancel"):
        assert live_service.client.post(f"{PREFIX}/jobs/{job}/{word}").status_code == 200
    sweep = spec(command=["true", "{p}"], sweep={"p": ["a", "b"]})
    group = live_service.client.post(f"{PREFIX}/jobs", json=sweep).json()["id"]
    assert live_service.client.post(f"{PREFIX}/groups/{group}/cancel").status_code == 200
    with connect(live_service.url, None) as browser:
        origin = {"Origin": live_service.url}
        assert browser.post(f"{PREFIX}/session", json={"token": live_service.admin_token}, headers=origin).is_success
        assert browser.delete(f"{PREFIX}/session", headers=origin).status_code == 204
    name = live_service.client.get(f"{PREFIX}/settings").json()["user"]["name"]
    told = [(each["action"], each["subject"]) for each in reversed(entries(live_service)) if each["result"] == "done"]
    assert told[0] == ("job.submit", job)
    assert told[1:4] == [("job.hold", job), ("job.release", job), ("job.cancel", job)]
    assert [action for action, _ in told[4:]][:2] == ["job.submit", "sweep.cancel"]
    assert {"session.open", "token.revoke"} <= {action for action, _ in told[6:]}
    assert {(each["user"], each["address"]) for each in entries(live_service)} == {(name, "127.0.0.1")}
    assert [each["action"] for each in entries(live_service, action="job")].count("job.submit") == 2


def test_what_changed_nothing_is_no_change(live_service: Live) -> None:
    before = len(entries(live_service))
    assert kind(live_service.client.post(f"{PREFIX}/jobs/job-x/cancel")) == (404, "not-found")
    assert kind(live_service.client.post(f"{PREFIX}/users", json={})) == (422, "invalid-request")
    assert live_service.client.get(f"{PREFIX}/jobs").status_code == 200
    assert live_service.anonymous.get(f"{PREFIX}/jobs").status_code == 401
    assert len(entries(live_service)) == before


def test_another_sites_page_and_slowed_guesses_are_recorded(live_service: Live) -> None:
    with connect(live_service.url, None) as browser:
        origin = {"Origin": live_service.url}
        browser.post(f"{PREFIX}/session", json={"token": live_service.admin_token}, headers=origin)
        evil = browser.post(f"{PREFIX}/jobs", json=spec(), headers={"Origin": "https://evil.example"})
        assert kind(evil) == (403, "forbidden")
    for _ in range(12):
        live_service.anonymous.post(f"{PREFIX}/session", json={"token": "ty_guess"})
    found = {(each["action"], each["status"]): each["times"] for each in entries(live_service, result="refused")}
    assert found == {("job.submit", 403): 1, ("session.open", 401): 10, ("session.open", 429): 2}


def test_a_flood_of_refusals_is_counted_and_bounded(live_service: Live) -> None:
    secret = member(live_service, "mallory", "read")
    with live_service.as_token(secret) as reader:
        for number in range(MAX_ENTRIES + 20):
            assert reader.post(f"{PREFIX}/jobs/job-{number}/cancel").status_code == 403
    refused = entries(live_service, result="refused", limit=500)
    assert len(refused) == MAX_SUBJECTS + 1
    assert sum(each["times"] for each in refused) == MAX_ENTRIES + 20
    assert {each["user"] for each in refused} == {"mallory"}


def test_who_asks_for_what_is_hidden_is_told_nothing_and_recorded(live_service: Live) -> None:
    client = live_service.client
    client.patch(f"{PREFIX}/projects/default", json={"visibility": "private"}).raise_for_status()
    ids = [client.post(f"{PREFIX}/jobs", json=spec()).json() for _ in range(MAX_SUBJECTS + 3)]
    sweep = client.post(f"{PREFIX}/jobs", json=spec(command=["true", "{p}"], sweep={"p": ["a", "b"]})).json()["id"]
    secret = member(live_service, "mallory", "read", "submit")
    with live_service.as_token(secret) as other:
        asked = [
            *(other.get(f"{PREFIX}/jobs/{job['number']}") for job in ids),
            other.get(f"{PREFIX}/jobs/{ids[0]['number']}/events"),
            other.post(f"{PREFIX}/jobs/{ids[0]['id']}/cancel"),
            other.get(f"{PREFIX}/groups/{sweep}"),
        ]
        unknown = [other.get(f"{PREFIX}/{path}") for path in ("jobs/999999", "groups/999999", "checkpoints/none")]
    assert {answer.status_code for answer in (*asked, *unknown)} == {404}
    hidden, missing = asked[0].json(), unknown[0].json()
    number = str(ids[0]["number"])
    as_missing = {"detail": hidden["detail"].replace(number, "999999"), "params": {"name": "999999"}}
    assert {**hidden, **as_missing} == {**missing, **_differing(hidden)}
    assert hidden["params"] == {"name": number}

    def all_are_counted() -> bool:
        found = entries(live_service, result="refused", user="mallory", limit=500)
        return sum(each["times"] for each in found) == len(asked)

    until(all_are_counted)
    found = entries(live_service, result="refused", user="mallory", limit=500)
    assert {(each["action"], each["status"]) for each in found} == {
        ("job.read", 404),
        ("job.cancel", 404),
        ("sweep.read", 404),
    }
    assert {each["subject"] for each in found} == {*(str(job["number"]) for job in ids[:MAX_SUBJECTS]), OTHERS}


def _differing(problem: dict[str, Any]) -> dict[str, Any]:
    """What a problem has of the one request alone."""
    return {name: problem[name] for name in ("instance", "request_id") if name in problem}


def test_a_refusal_is_one_though_the_audit_lacks_it(
    live_service: Live, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with live_service.context.db.write(), monkeypatch.context() as hasty:
        hasty.setattr(engine, "WAIT_S", 0.05)
        assert kind(live_service.anonymous.post(f"{PREFIX}/jobs", json=spec())) == (401, "unauthorized")
    lacks = "the audit lacks POST /api/v1/jobs" in caplog.text
    assert lacks is live_service.context.db.is_sqlite  # where one writer does not keep out the others, it has it


def test_strange_names_do_no_harm(live_service: Live) -> None:
    secret = member(live_service, "mallory", "read")
    with live_service.as_token(secret) as reader:
        reader.request("DELETE", f"{PREFIX}/users/=cmd%7C'c%20calc'%21A0%0a%1b[31m")
    (entry,) = entries(live_service, user="mallory")
    assert "\n" not in entry["subject"]
    assert "\x1b" not in entry["subject"]
    answer = live_service.client.get(f"{PREFIX}/audit", params={"format": "csv", "user": "mallory"})
    assert answer.headers["content-type"].startswith("text/csv")
    header, row = csv.reader(io.StringIO(answer.text))
    assert dict(zip(header, row, strict=True))["subject"].startswith("'=cmd")


def test_filters_pages_and_the_whole_table(live_service: Live) -> None:
    now = live_service.context.now_us()
    with live_service.context.db.write() as tx:
        rows = [
            {
                "id": f"audit-{number:04}",
                "at_us": now + number * 1_000_000,
                "user_id": "gone",
                "subject": "x",
                "data": {},
            }
            | {"action": "policy.set" if number % 2 else "quota.set"}
            for number in range(audit.CSV_PAGE + 10)
        ]
        tx.execute(insert(Audit), rows)
    first = live_service.client.get(f"{PREFIX}/audit", params={"user": "gone", "limit": 4}).json()
    assert [each["id"] for each in first["items"]] == [f"audit-{number:04}" for number in (509, 508, 507, 506)]
    second = live_service.client.get(f"{PREFIX}/audit", params={"user": "gone", "limit": 4, "cursor": first["next"]})
    assert second.json()["items"][0]["id"] == "audit-0505"
    start = datetime.fromtimestamp(now // 1_000_000, UTC) + timedelta(seconds=100)
    query = {"since": start.isoformat(), "until": (start + timedelta(seconds=10)).isoformat(), "action": "policy"}
    assert len(entries(live_service, **query)) == 5
    table = list(csv.reader(io.StringIO(live_service.client.get(f"{PREFIX}/audit?format=csv&user=gone").text)))
    assert len(table) == audit.CSV_PAGE + 11
    assert kind(live_service.client.get(f"{PREFIX}/audit?since=yesterday")) == (422, "invalid-request")


def test_old_entries_are_forgotten(live_service: Live) -> None:
    now = live_service.context.now_us()
    with live_service.context.db.write() as tx:
        old = {"at_us": now - 3 * 86_400_000_000, "user_id": "u", "action": "a", "subject": "s", "data": {}}
        tx.execute(insert(Audit).values(id="audit-old", **old))
    live_service.client.post(f"{PREFIX}/users", json={"name": "ada"})
    audit.forget_old(live_service.context.db, now, 2 * 86_400)
    assert [each["action"] for each in entries(live_service)] == ["user.create"]


@pytest.mark.parametrize("change", ["done", "failed"])
def test_a_change_and_its_entry_are_there_together_or_not_at_all(live_service: Live, change: str) -> None:
    body = {"name": "ada"} if change == "done" else {"name": "ada", "project": "none"}
    live_service.client.post(f"{PREFIX}/users", json=body)
    with live_service.context.db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(Audit)) == (1 if change == "done" else 0)
    text = json.dumps(entries(live_service))
    assert ("user.create" in text) == (change == "done")
