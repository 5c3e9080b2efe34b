"""``/groups`` over real HTTP, on both databases."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, update

from service.db.models import Group, Job
from tests.integration.service.api.routes.test_jobs import end, report, run
from tests.support.live import Live
from tests.support.problems import kind
from tests.support.specs import spec

API = "/api/v1"
SWEEP = {"command": ["echo", "{lr}"], "sweep": {"lr": [0.1, 0.2, 0.3]}}


def submit(live: Live, **changes: Any) -> dict[str, Any]:
    answer = live.client.post(f"{API}/jobs", json=spec(**{**SWEEP, **changes}))
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def get(live: Live, path: str, **params: Any) -> Any:
    answer = live.client.get(f"{API}{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def trials(live: Live, group: dict[str, Any], **params: Any) -> list[dict[str, Any]]:
    return list(get(live, f"/groups/{group['id']}/trials", **params)["items"])


def count(live: Live, table: type) -> int:
    with live.context.db.read() as tx:
        return tx.scalar(select(func.count()).select_from(table)) or 0


def test_a_sweep_is_submitted_and_shown_by_id_and_number(live_service: Live) -> None:
    answer = live_service.client.post(f"{API}/jobs", json=spec(name="lrs", **SWEEP))
    group = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{API}/groups/{group['id']}"
    assert (group["number"], group["name"], group["size"], group["states"]) == (1, "lrs", 3, {"queued": 3})
    assert (group["ended_at"], group["paused"], group["best"], group["metric"]) == (None, None, None, None)
    shown = live_service.client.get(answer.headers["location"])
    assert shown.json() == group == get(live_service, "/groups/1")
    assert get(live_service, "/groups")["items"] == [group]
    jobs = trials(live_service, group)
    assert [(job["number"], job["name"], job["trial"]) for job in jobs] == [(n + 1, f"lrs-{n}", n) for n in (1, 2, 3)]
    assert [job["parameters"] for job in jobs] == [{"lr": 0.1}, {"lr": 0.2}, {"lr": 0.3}]
    assert all(job["group"] == group["id"] for job in jobs)
    assert jobs[2]["spec"]["command"] == ["echo", "0.3"]
    assert jobs[2]["spec"]["env"] == {"TORCHYARD_PARAMETERS": '{"lr": 0.3}'}


def test_lists_show_trials_of_one_sweep_or_of_none(live_service: Live) -> None:
    alone = live_service.client.post(f"{API}/jobs", json=spec()).json()
    first, second = submit(live_service, tags=["a"]), submit(live_service, name="lrs")
    for ref in (first["id"], first["number"]):
        listed = get(live_service, "/jobs", group=ref)["items"]
        assert {job["group"] for job in listed} == {first["id"]}
        assert len(listed) == 3
    assert [job["id"] for job in get(live_service, "/jobs", trials="false")["items"]] == [alone["id"]]
    assert get(live_service, "/jobs", group="grp-none")["items"] == []
    page = get(live_service, "/groups", limit=1)
    assert page["items"][0]["id"] == second["id"]
    assert get(live_service, "/groups", limit=1, cursor=page["next"])["items"][0]["id"] == first["id"]
    for wanted in (
        {"q": "LR"},
        {"state": "queued", "q": "lrs"},
        {"user": second["user"], "q": "lrs"},
        {"q": second["number"]},
        {"q": second["id"][:-2]},
        {"tag": ""},
        {"after": first["number"]},
    ):
        assert [group["id"] for group in get(live_service, "/groups", **wanted)["items"]] == [second["id"]]
    for wanted in ({"tag": "a"}, {"before": second["number"]}):
        assert [group["id"] for group in get(live_service, "/groups", **wanted)["items"]] == [first["id"]]
    for nothing in ({"user": "nobody"}, {"state": "running"}, {"project": "none"}):
        assert get(live_service, "/groups", **nothing)["items"] == []


def test_trials_are_compared_by_what_they_last_reported(live_service: Live) -> None:
    group = submit(live_service, checkpoint={"keep_best": {"metric": "acc", "mode": "max"}})
    jobs = trials(live_service, group)
    path = f"{API}/groups/{group['number']}"
    unheard = live_service.client.get(path)
    assert (unheard.json()["metric"], unheard.json()["mode"]) == ("acc", "max")
    for job, acc in zip(jobs, (0.5, 0.9, 0.7), strict=True):
        attempt = run(live_service, job["id"])
        report(live_service, attempt, 0, 1, acc=acc, loss=acc * 2)
        report(live_service, attempt, 1, 1, acc=1.0)
    again = live_service.client.get(path, headers={"If-None-Match": unheard.headers["etag"]})
    assert again.status_code == 200
    assert again.json()["best"]["id"] == jobs[1]["id"]
    assert again.json()["best"]["latest"]["acc"] == 0.9
    same = live_service.client.get(path, headers={"If-None-Match": again.headers["etag"]})
    assert same.status_code == 304
    assert get(live_service, f"/groups/{group['id']}", metric="loss")["best"]["id"] == jobs[0]["id"]
    assert get(live_service, f"/groups/{group['id']}", metric="loss", mode="max")["best"]["id"] == jobs[1]["id"]
    assert get(live_service, f"/groups/{group['id']}", metric="none")["best"] is None
    ranked = trials(live_service, group, best_first="true", limit=2)
    assert [job["trial"] for job in ranked] == [2, 3]
    page = get(live_service, f"/groups/{group['id']}/trials", best_first="true", limit=2)
    assert [job["trial"] for job in trials(live_service, group, best_first="true", cursor=page["next"])] == [1]
    unnamed = submit(live_service)
    asked = live_service.client.get(f"{API}/groups/{unnamed['id']}/trials", params={"best_first": "true"})
    assert (kind(asked), asked.json()["errors"][0]["field"]) == ((422, "invalid-request"), "metric")
    table = live_service.client.get(f"{path}/trials")
    for tag, status in ((table.headers["etag"], 304), ('"other"', 200)):
        assert live_service.client.get(f"{path}/trials", headers={"If-None-Match": tag}).status_code == status
    page = get(live_service, f"/groups/{group['id']}/trials", limit=2)
    assert [job["trial"] for job in page["items"]] == [1, 2]
    assert [job["trial"] for job in trials(live_service, group, cursor=page["next"])] == [3]


def test_all_trials_are_held_released_and_cancelled_as_one(live_service: Live) -> None:
    group = submit(live_service)
    path, jobs = f"{API}/groups/{group['id']}", trials(live_service, group)
    held = live_service.client.post(f"{path}/hold")
    assert held.json()["held"] == 3
    assert held.headers["etag"] == live_service.client.get(path).headers["etag"]
    assert live_service.client.post(f"{path}/release").json()["held"] == 0
    attempt = run(live_service, jobs[0]["id"])
    assert live_service.client.post(f"{path}/cancel").json()["states"] == {"cancelled": 2, "stopping": 1}
    end(live_service, attempt, jobs[0]["id"])
    over = live_service.client.get(path).json()
    assert over["states"] == {"cancelled": 2, "succeeded": 1}
    assert over["ended_at"] is not None
    for action in ("cancel", "resume"):
        assert live_service.client.post(f"{path}/{action}").json()["states"] == over["states"]
    refused = live_service.client.post(f"{path}/hold")
    assert kind(refused) == (409, "not-acceptable-state")
    kinds = [event["kind"] for event in get(live_service, f"/jobs/{jobs[1]['id']}/events")["items"]]
    assert kinds == ["submitted", "held", "released", "cancelled"]


def test_a_pause_is_shown_and_taken_back(live_service: Live) -> None:
    group = submit(live_service)
    with live_service.context.db.write() as tx:
        tx.execute(update(Group).values(paused="the first 3 trials all failed alike"))
    assert get(live_service, f"/groups/{group['id']}")["paused"] == "the first 3 trials all failed alike"
    assert live_service.client.post(f"{API}/groups/{group['id']}/resume").json()["paused"] is None
    (entry,) = [each for each in get(live_service, "/audit")["items"] if each["action"] == "sweep.resume"]
    assert entry["subject"] == group["id"]


def test_the_same_key_makes_one_sweep(live_service: Live) -> None:
    def post(body: dict[str, Any]) -> httpx.Response:
        return live_service.client.post(f"{API}/jobs", json=body, headers={"Idempotency-Key": "once"})

    first, again = post(spec(**SWEEP)), post(spec(**SWEEP))
    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert kind(post(spec(**SWEEP, name="other"))) == (422, "idempotency-mismatch")
    assert (count(live_service, Group), count(live_service, Job)) == (1, 3)


def test_a_dry_run_stores_nothing(live_service: Live) -> None:
    answer = live_service.client.post(f"{API}/jobs", params={"dry_run": "true"}, json=spec(**SWEEP, name="x"))
    assert answer.status_code == 200
    assert answer.json()["trials"] == 3
    assert answer.json()["first_trials"][2] == {"name": "x-3", "parameters": {"lr": 0.3}}
    assert count(live_service, Job) == 0


def test_a_sweep_is_no_job(live_service: Live) -> None:
    group = submit(live_service)
    for ref in (group["id"], group["number"]):
        answer = live_service.client.get(f"{API}/jobs/{ref}")
        assert kind(answer) == (404, "not-found")
        assert f"{group['number']} is a sweep, not a job" in answer.json()["detail"]
    for ref in ("grp-none", "2", "9" * 30):
        assert kind(live_service.client.get(f"{API}/groups/{ref}")) == (404, "not-found")
    rerun = live_service.client.post(f"{API}/jobs/2/rerun", json={"changes": {"sweep": SWEEP["sweep"]}})
    assert kind(rerun) == (422, "invalid-request")
    assert rerun.json()["errors"][0]["field"] == "changes.sweep"


def test_a_trial_runs_again_as_a_job_of_its_own(live_service: Live) -> None:
    group = submit(live_service)
    again = live_service.client.post(f"{API}/jobs/2/rerun").json()
    assert (again["group"], again["trial"], again["parameters"]) == (None, None, None)
    assert again["spec"]["command"] == ["echo", "0.1"]
    assert get(live_service, f"/groups/{group['id']}")["size"] == 3


def test_only_the_owner_and_administrators_change_a_sweep(live_service: Live) -> None:
    group = submit(live_service)
    live_service.client.post(f"{API}/users", json={"name": "bob"})
    live_service.client.put(f"{API}/projects/default/members/bob")
    token = {"name": "t", "scopes": ["submit"], "user": "bob"}
    secret = live_service.client.post(f"{API}/tokens", json=token).json()["secret"]
    with live_service.as_token(secret) as bob:
        for action in ("cancel", "hold", "release", "resume"):
            assert kind(bob.post(f"{API}/groups/{group['id']}/{action}")) == (403, "forbidden")
        assert bob.get(f"{API}/groups/{group['id']}").json()["states"] == {"queued": 3}
        named = bob.post(f"{API}/jobs", json=spec(after=[group["number"]]))
        assert named.status_code == 201
        assert named.json()["blocked"] is True


def test_an_end_that_nobody_announces_is_seen_by_those_who_wait_for_it(
    live_service: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.api.routes.jobs.LOOK_S", 0.05)
    first = live_service.client.post(f"{API}/jobs", json=spec()).json()
    second = live_service.client.post(f"{API}/jobs", json=spec(after=[first["number"]])).json()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(live_service.client.get, f"{API}/jobs/{second['id']}", params={"wait": 25})
        assert live_service.client.post(f"{API}/jobs/{first['id']}/cancel").status_code == 200
        ended = waiting.result(20).json()
    assert (ended["state"], ended["blocked"], ended["error"]["cause"]) == ("failed", False, "dependency")


def test_sweeps_of_nonsense_store_nothing(live_service: Live) -> None:
    for changes, field in (
        ({"sweep": {}}, "sweep.parameters"),
        ({"sweep": {"lr": []}}, "sweep.parameters.lr.list"),
        ({"sweep": {"lr": [10**30]}}, "sweep.lr.0"),
        ({"sweep": {"lr": {"range": [0, 10**15]}}}, "sweep"),
        ({"sweep": {"lr": {"uniform": [0, 1]}}}, "sweep"),
        ({"sweep": {"parameters": {"lr": [1]}, "trials": 10**6}}, "sweep.trials"),
        ({"sweep": {"lr\0": [1]}}, "sweep"),
        ({"sweep": {"rate": [1]}}, "sweep.parameters.rate"),
        ({"sweep": {"lr": [1], "__class__.x": [1]}}, "sweep.parameters.__class__.x"),
        ({"sweep": {"lr": [1], "env.TORCHYARD_TOKEN": ["x"]}}, "sweep.parameters"),
        ({"sweep": {"lr": [1], "env.LD PRELOAD": ["x"]}}, "sweep.parameters"),
        ({"after": ["99"]}, "after.jobs.0"),
        ({"after": []}, "after.jobs"),
        ({"after": {"jobs": ["x"] * 1001}}, "after.jobs"),
        ({"after": ["9" * 40]}, "after.jobs.0"),
    ):
        answer = live_service.client.post(f"{API}/jobs", json=spec(**{**SWEEP, **changes}))
        assert kind(answer) == (422, "invalid-request"), changes
        assert answer.json()["errors"][0]["field"].startswith(field), answer.text
    assert (count(live_service, Group), count(live_service, Job)) == (0, 0)
