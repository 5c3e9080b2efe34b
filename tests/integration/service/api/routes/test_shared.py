"""Public links: who makes and revokes them, what they show to strangers, and what does not open."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from service.errors import ProblemError
from service.identity.link_tokens import Link
from service.identity.sign_in_limits import GLOBALLY, PER_ADDRESS, SignInLimits
from tests.support import scripted
from tests.support.live import Live
from tests.support.problems import kind
from tests.support.specs import spec
from torchyard.api import PREFIX
from torchyard.ids import JobId

TIMES = {"created_at", "started_at", "ended_at", "ran_s", "running_since"}
SHOWN = {"name", "owner", "state", "progress", "latest", *TIMES}
SERIES = {"name", "rank", "points", "buckets"}
SECRETS = ("word-of-spec", "value-of-env", "tag-of-job", "line-of-log", "error-of-job", "traceback-of-job", "GPU-0")


@pytest.fixture
def sharing(serve: Callable[..., Any]) -> Iterator[Live]:
    """A service that allows public links."""
    with serve(shared_links=True) as live:
        yield live


def submitted(live: Live, **changes: Any) -> dict[str, Any]:
    answer = live.client.post(f"{PREFIX}/jobs", json=spec(**changes))
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def shared(live: Live, job: dict[str, Any], **asked: Any) -> str:
    """Token of a new link."""
    answer = live.client.post(f"{PREFIX}/jobs/{job['number']}/link", json=asked)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


def ended(live: Live) -> dict[str, Any]:
    """A job that has left everything that jobs leave."""
    job = submitted(
        live, command=["true", "word-of-spec"], env={"KEY": "value-of-env"}, tags=["tag-of-job"], resources={"gpus": 1}
    )
    with scripted.agent(live) as agent:
        attempt = agent.start()
        attempt.report(range(30), total_steps=60, loss=lambda step: 1 / (1 + step))
        attempt.write("line-of-log\n")
        attempt.end(exit_code=1, failed_rank=0, message="error-of-job", traceback="traceback-of-job")
    return job


def opened(live: Live, token: str, rest: str = "") -> httpx.Response:
    """What a stranger gets who has asked for nothing before."""
    live.app.state.link_limits = SignInLimits(time.monotonic, "public links")
    return live.anonymous.get(f"{PREFIX}/shared/{token}{rest}")


def check_nothing(live: Live, *tokens: str) -> None:
    """None of them opens, and all answers are the same."""
    answers = [opened(live, token, rest) for token in tokens for rest in ("", "/metrics")]
    assert {kind(answer) for answer in answers} == {(404, "not-found")}
    assert len({answer.json()["detail"] for answer in answers}) == 1


def test_a_stranger_sees_how_a_job_goes_and_nothing_else(sharing: Live) -> None:
    job = ended(sharing)
    answer = sharing.client.post(f"{PREFIX}/jobs/{job['id']}/link")
    assert answer.status_code == 201
    made = answer.json()
    assert made["url"] == f"{sharing.url}/shared/{made['token']}"
    assert datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC) > timedelta(days=6.9)
    run = opened(sharing, made["token"])
    assert run.status_code == 200, run.text
    assert set(run.json()) == SHOWN
    assert (run.json()["name"], run.json()["owner"], run.json()["state"]) == (job["name"], job["user"], "failed")
    assert set(run.json()["progress"]) == {"source", "step", "total_steps", "eta_s"}
    assert run.json()["latest"] == {"loss": pytest.approx(1 / 30)}
    metrics = opened(sharing, made["token"], "/metrics?start=10&end=19&buckets=100")
    assert set(metrics.json()) == {"series", "cursor", "reset"}
    (series,) = metrics.json()["series"]
    assert set(series) == SERIES
    assert [point[0] for point in series["points"]] == list(range(10, 20))
    assert metrics.json() == sharing.client.get(f"{PREFIX}/jobs/{job['id']}/metrics?start=10&end=19&buckets=100").json()
    for answer in (run, metrics):
        assert not [word for word in (*SECRETS, job["id"]) if word in answer.text]


def test_no_cache_keeps_it_and_no_search_engine_lists_it(sharing: Live) -> None:
    token = shared(sharing, submitted(sharing))
    page = sharing.anonymous.get(f"/shared/{token}")
    assert page.headers["content-type"].startswith("text/html")
    for answer in (page, opened(sharing, token), opened(sharing, token, "/metrics"), opened(sharing, "x")):
        found = {name: answer.headers.get_list(name) for name in ("cache-control", "referrer-policy", "x-robots-tag")}
        assert found == {
            "cache-control": ["private, no-store"],
            "referrer-policy": ["no-referrer"],
            "x-robots-tag": ["noindex"],
        }


def test_tampered_expired_and_unknown_ones_are_all_the_same_to_a_stranger(sharing: Live) -> None:
    job, other = submitted(sharing), submitted(sharing)
    token = shared(sharing, job)
    head, claims, signature = token.split(".")
    of_other = json.dumps({"sub": other["id"], "serial": 0, "exp": 2**40}).encode()
    forged = base64.urlsafe_b64encode(of_other).decode().rstrip("=")
    tokens = sharing.app.state.link_tokens
    now = int(time.time())
    check_nothing(
        sharing,
        f"{head}.{forged}.{signature}",
        f"{head}.{claims}.{signature[::-1]}",
        f"{head}.{claims}.",
        tokens.sign(Link(JobId(job["id"]), 0), now - 2),
        tokens.sign(Link(JobId(job["id"]), 1), now + 60),
        tokens.sign(Link(JobId("job-gone"), 0), now + 60),
        job["id"],
        str(job["number"]),
        sharing.admin_token,
    )
    assert opened(sharing, token).status_code == 200


def test_revoking_ends_all_links_of_the_job_and_later_ones_open(sharing: Live) -> None:
    job, other = submitted(sharing), submitted(sharing)
    path = f"{PREFIX}/jobs/{job['id']}/link"
    links = [shared(sharing, job), shared(sharing, job, expires_in="90d"), shared(sharing, job, expires_in="1h")]
    until = datetime.fromisoformat(sharing.client.get(path).json()["expires_at"])
    assert until - datetime.now(UTC) > timedelta(days=89)
    kept = shared(sharing, other)
    for _ in range(2):
        assert sharing.client.delete(path).status_code == 204
    check_nothing(sharing, *links)
    assert sharing.client.get(path).json() == {"expires_at": None}
    assert opened(sharing, kept).status_code == 200
    assert opened(sharing, shared(sharing, job)).status_code == 200
    events = sharing.client.get(f"{PREFIX}/jobs/{job['id']}/events").json()["items"]
    assert [each["kind"] for each in events][1:] == ["shared"] * 3 + ["unshared"] * 2 + ["shared"]
    told = sharing.client.get(f"{PREFIX}/audit", params={"action": "job"}).json()["items"]
    changes = [(each["action"], each["data"].keys()) for each in told if each["subject"] == job["id"]]
    assert changes[0] == ("job.share", {"expires_at"})
    assert [action for action, _ in changes].count("job.unshare") == 2
    assert links[0] not in json.dumps([events, told])


def test_a_project_that_becomes_private_ends_its_links_at_once(sharing: Live) -> None:
    job = submitted(sharing)
    token, project = shared(sharing, job), f"{PREFIX}/projects/default"
    for visibility, status in (("private", 404), ("project", 200), ("everyone", 200), ("private", 404), (None, 200)):
        sharing.client.patch(project, json={"visibility": visibility}).raise_for_status()
        assert opened(sharing, token).status_code == status
        assert opened(sharing, token, "/metrics").status_code == status
        assert (sharing.client.get(f"{PREFIX}/jobs/{job['id']}/link").json()["expires_at"] is None) == (status == 404)
    sharing.context.settings.visibility = "private"  # as a settings file that is read anew does
    check_nothing(sharing, token)
    refused = sharing.client.post(f"{PREFIX}/jobs/{job['id']}/link")
    assert kind(refused) == (409, "conflict")
    assert "yard projects set default --visibility project" in refused.json()["detail"]
    assert sharing.client.delete(f"{PREFIX}/jobs/{job['id']}/link").status_code == 204


def test_a_link_does_not_open_while_its_maker_is_deactivated(sharing: Live) -> None:
    sharing.client.post(f"{PREFIX}/users", json={"name": "ada"}).raise_for_status()
    asked = {"name": "laptop", "user": "ada", "scopes": ["read", "submit"]}
    secret = sharing.client.post(f"{PREFIX}/tokens", json=asked).raise_for_status().json()["secret"]
    with sharing.as_token(secret) as ada:
        job = ada.post(f"{PREFIX}/jobs", json=spec()).raise_for_status().json()
        theirs = ada.post(f"{PREFIX}/jobs/{job['number']}/link").raise_for_status().json()["token"]
    kept = shared(sharing, job)
    of_before = sharing.app.state.link_tokens.sign(Link(JobId(job["id"]), 0), int(time.time()) + 60)
    assert opened(sharing, theirs).status_code == opened(sharing, of_before).status_code == 200
    sharing.client.patch(f"{PREFIX}/users/ada", json={"active": False}).raise_for_status()
    check_nothing(sharing, theirs, of_before)
    assert opened(sharing, kept).status_code == 200
    sharing.client.patch(f"{PREFIX}/users/ada", json={"active": True}).raise_for_status()
    assert opened(sharing, theirs).status_code == 200


def test_without_the_setting_there_are_none(live_service: Live) -> None:
    assert live_service.client.get(f"{PREFIX}/settings").json()["shared_links"] is False
    job = submitted(live_service)
    path = f"{PREFIX}/jobs/{job['id']}/link"
    refused = live_service.client.post(path)
    assert kind(refused) == (403, "forbidden")
    assert "TORCHYARD_SHARED_LINKS=1" in refused.json()["detail"]
    live_service.context.settings.shared_links = True
    token = shared(live_service, job)
    assert opened(live_service, token).status_code == 200
    live_service.context.settings.shared_links = False
    check_nothing(live_service, token)
    assert live_service.client.get(path).json() == {"expires_at": None}
    assert live_service.client.delete(path).status_code == 204


def test_guesses_are_slowed_and_neither_links_that_open_nor_sign_ins_are(sharing: Live) -> None:
    token = shared(sharing, submitted(sharing))
    for _ in range(PER_ADDRESS):
        assert sharing.anonymous.get(f"{PREFIX}/shared/x").status_code == 404
    slowed = sharing.anonymous.get(f"{PREFIX}/shared/x")
    assert kind(slowed) == (429, "too-many-requests")
    assert 1 <= int(slowed.headers["retry-after"]) <= 60
    assert "public links" in slowed.json()["detail"]
    for number in range(GLOBALLY - PER_ADDRESS):
        sharing.app.state.link_limits.begin(f"10.0.0.{number}")
    with pytest.raises(ProblemError, match="Too many public links from many addresses"):
        sharing.app.state.link_limits.begin("10.0.0.0")
    sharing.app.state.link_limits.begin("10.0.1.0")
    for rest in ("", "/metrics"):
        assert sharing.anonymous.get(f"{PREFIX}/shared/{token}{rest}").status_code == 200
    signed_in = sharing.anonymous.post(f"{PREFIX}/session", json={"token": sharing.admin_token})
    assert signed_in.status_code == 201


def test_a_link_is_for_reading_alone(sharing: Live) -> None:
    job = submitted(sharing)
    token = shared(sharing, job)
    for rest in ("", "/metrics"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            answer = sharing.anonymous.request(method, f"{PREFIX}/shared/{token}{rest}")
            assert kind(answer) == (401, "unauthorized"), (method, rest)
        assert sharing.anonymous.head(f"{PREFIX}/shared/{token}{rest}").status_code == 405
    for rest in ("/logs", "/events", "/spec", "/telemetry", "/checkpoints", "/outputs", "/../../jobs"):
        assert sharing.anonymous.get(f"{PREFIX}/shared/{token}{rest}").status_code in {401, 404}, rest
    with sharing.as_token(token) as client:
        for path in (f"/jobs/{job['id']}", f"/jobs/{job['id']}/metrics", "/settings"):
            assert kind(client.get(PREFIX + path)) == (401, "unauthorized"), path


def test_how_long_it_counts_has_bounds(sharing: Live) -> None:
    job = submitted(sharing)
    for asked in ("0", "-1d", "91d", "59s", "soon", None, 10**30):
        answer = sharing.client.post(f"{PREFIX}/jobs/{job['id']}/link", json={"expires_in": asked})
        assert kind(answer) == (422, "invalid-request")
        assert answer.json()["errors"][0]["field"] == "expires_in"


def test_owner_and_administrators_make_and_revoke_them(sharing: Live) -> None:
    people: dict[str, httpx.Client] = {}
    for name in ("ada", "mate", "head"):
        sharing.client.post(f"{PREFIX}/users", json={"name": name}).raise_for_status()
        made = sharing.client.post(f"{PREFIX}/tokens", json={"name": "t", "scopes": ["submit"], "user": name})
        people[name] = sharing.as_token(made.json()["secret"])
        role = {"role": "administrator" if name == "head" else "member"}
        sharing.client.put(f"{PREFIX}/projects/default/members/{name}", json=role).raise_for_status()
    job = people["ada"].post(f"{PREFIX}/jobs", json=spec()).json()
    path = f"{PREFIX}/jobs/{job['id']}/link"
    for name in ("ada", "head"):
        assert people[name].post(path).status_code == 201
        assert people[name].delete(path).status_code == 204
    assert people["mate"].get(path).json() == {"expires_at": None}
    for answer in (people["mate"].post(path), people["mate"].delete(path)):
        assert kind(answer) == (403, "forbidden")
    for client in people.values():
        client.close()
