"""What is said of a job over REST; what is said to start it now does so when it is done."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from service import lifecycle
from service.db.models import Account, Attempt, Job, MetricPoint, MetricSeries, Node, Reservation, User
from service.infra.times import moment
from tests.support import box
from tests.support.live import Live
from tests.support.wait import until
from torchyard.states import StopReason
from torchyard.wire import Capability, Result, ResultKind

SECOND = 1_000_000


@pytest.fixture
def live(serve: Callable[..., Any]) -> Any:
    with serve() as running:
        yield running


def submit(live: Live, gpus: int = 1, resources: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    body = {"command": ["true"], "launcher": "none", "resources": {"gpus": gpus, **(resources or {})}, **fields}
    found: dict[str, Any] = live.client.post("/api/v1/jobs", json=body).raise_for_status().json()
    return found


def add_node(live: Live, name: str = "box", devices: int = 2, **values: Any) -> list[str]:
    return box.add_node(live.context.db, name, devices, last_seen_us=live.context.now_us(), **values)


def starts(live: Live, job: dict[str, Any]) -> None:
    until(lambda: box.job_row(live.context.db, job["id"]).state == "assigned")


def runs(live: Live, **fields: Any) -> tuple[str, str]:
    """A job that runs since now; its id and its attempt's."""
    job, now = submit(live, **fields), live.context.now_us()
    starts(live, job)
    with live.context.db.write() as tx:
        attempt_id = tx.execute(select(Attempt.id).where(Attempt.job_id == job["id"])).scalar_one()
        lifecycle.claim(tx, attempt_id, "box", "nonce", now)
        lifecycle.mark_running(tx, attempt_id, now, now)
    return job["id"], attempt_id


def why(live: Live, job: str) -> dict[str, Any]:
    found: dict[str, Any] = live.client.get(f"/api/v1/jobs/{job}/why").raise_for_status().json()
    return found


def alternatives(live: Live, job: dict[str, Any]) -> list[dict[str, Any]]:
    found = why(live, job["id"])["alternatives"]
    return [each for each in found if each["starts"] == "now"]


def take(live: Live, job: dict[str, Any], alternative: dict[str, Any]) -> dict[str, Any]:
    """Does what the command says: changes the job as it waits, or cancels it and submits it anew, changed."""
    path, change = f"/api/v1/jobs/{job['id']}", alternative["change"]
    if alternative["command"].startswith("yard release"):
        done = live.client.post(f"{path}/release")
    elif alternative["command"].startswith("yard change"):
        headers = {"If-Match": live.client.get(path).headers["ETag"]}
        done = live.client.patch(path, json=change, headers=headers)
    else:
        live.client.post(f"{path}/cancel").raise_for_status()
        resources = {name.removeprefix("resources."): value for name, value in change.items() if "." in name}
        others = {name: value for name, value in change.items() if "." not in name}
        done = live.client.post(f"{path}/rerun", json={"changes": {**others, "resources": resources}})
    found: dict[str, Any] = done.raise_for_status().json()
    return found


def test_fewer_gpus_and_a_shared_card(live: Live) -> None:
    add_node(live)
    starts(live, submit(live, resources={"gpu_share": "30GiB"}))
    job = submit(live, 2)
    fewer, shared = alternatives(live, job)
    assert (fewer["change"], shared["change"]) == ({"resources.gpus": 1}, {"resources.gpu_share": "50GiB"})
    assert fewer["message"] == "it would start now with 1 GPU instead of 2, on node box"
    assert fewer["command"] == f"yard cancel {job['number']} && yard rerun {job['number']} --set resources.gpus=1"
    changed = take(live, job, shared)
    starts(live, changed)
    live.client.post(f"/api/v1/jobs/{changed['id']}/cancel").raise_for_status()
    job = submit(live, 2)
    starts(live, take(live, job, alternatives(live, job)[0]))


@pytest.mark.parametrize(
    ("asks", "words", "known"),
    [
        ({"resources": {"gpu_share": "30GiB"}}, "shared GPUs", Capability.GPU_SHARE),
        ({"secrets": ["HF_TOKEN"]}, "secrets", Capability.SECRETS),
        ({"warm_start": False}, "warm_start", Capability.WARM_START),
    ],
)
def test_a_worker_that_is_too_old_for_a_job_does_not_get_it(
    live: Live, asks: dict[str, Any], words: str, known: Capability
) -> None:
    add_node(live, capabilities=None)
    live.client.put("/api/v1/secrets/HF_TOKEN", json={"value": "x"}).raise_for_status()
    job = submit(live, **asks)
    (reason,) = why(live, job["id"])["reasons"]
    message = f"needs a worker that knows {words}: node box runs an older one, until an administrator upgrades it"
    assert (reason["code"], reason["message"]) == ("outdated", message)
    with live.context.db.write() as tx:
        tx.execute(update(Node).values(capabilities=[known]))
    live.context.wake_scheduler()
    starts(live, job)


def test_one_node_and_another_label(live: Live) -> None:
    add_node(live, "a", labels=["fast"])
    add_node(live, "b")
    starts(live, submit(live, resources={"labels": ["fast"]}))
    labelled = submit(live, 2, resources={"labels": ["fast"]})
    job = submit(live, 2, resources={"nodes": 2})
    (spread,) = [each for each in alternatives(live, job) if "resources.nodes" in each["change"]]
    assert spread["change"] == {"resources.nodes": 1}
    taken = take(live, job, spread)
    starts(live, taken)
    live.client.post(f"/api/v1/jobs/{taken['id']}/cancel").raise_for_status()
    (other,) = [each for each in alternatives(live, labelled) if "resources.labels" in each["change"]]
    assert other["command"].endswith("--set resources.labels=null")
    starts(live, take(live, labelled, other))


def blocked(live: Live) -> dict[str, Any]:
    """A job of one GPU that is free, but kept for one of two; a job with an hour to go has the other."""
    starts(live, submit(live, time_limit=3600))
    submit(live, 2)
    return submit(live)


@pytest.mark.parametrize("field", ["priority", "time_limit"])
def test_a_job_changed_as_it_waits(live: Live, field: str) -> None:
    add_node(live)
    job = blocked(live)
    found = why(live, job["id"])
    assert found["reasons"][0]["code"] == "behind"
    chosen = next(each for each in found["alternatives"] if field in each["change"])
    assert chosen["command"] == f"yard change {job['number']} --set {field}={chosen['change'][field]}"
    starts(live, take(live, job, chosen))


def test_what_may_be_stopped_fills_a_reservation(live: Live) -> None:
    add_node(live)
    now = live.context.now_us()
    with live.context.db.write() as tx:
        user = tx.scalar(select(User.id))
        hours = {"starts_us": now + 3600 * SECOND, "ends_us": now + 7200 * SECOND}
        lists: dict[str, list[str]] = {"users": [], "projects": ["others"], "nodes": []}
        values = {"id": "res-1", "name": "demo", "created_by": user, "created_us": now}
        tx.execute(insert(Reservation).values(**values, **hours, **lists))
    job = submit(live)
    assert why(live, job["id"])["reasons"][0]["code"] == "reserved"
    found = next(each for each in alternatives(live, job) if "restartable" in each["change"])
    assert found["command"].endswith("--set restartable=true")
    starts(live, take(live, job, found))


def test_a_node_under_maintenance_says_until_when(live: Live) -> None:
    add_node(live)
    now = live.context.now_us()
    with live.context.db.write() as tx:
        values = {"id": "res-1", "name": "disks", "created_by": tx.scalar(select(User.id)), "created_us": now}
        hours = {"starts_us": now - 3600 * SECOND, "ends_us": now + 3600 * SECOND}
        lists = {"users": [], "projects": [], "nodes": ["box"]}
        tx.execute(insert(Reservation).values(**values, **hours, **lists, maintenance=True))
    until(lambda: box.node_row(live.context.db, "box").draining)
    found = why(live, submit(live)["id"])
    (reason,) = found["reasons"]
    assert (reason["code"], reason["until"]) == ("draining", found["expected_start_at"])
    assert abs(datetime.fromisoformat(reason["until"]) - moment(now + 3600 * SECOND)) <= timedelta(minutes=1)


def test_urgent_is_proposed_only_to_those_who_may(live: Live) -> None:
    add_node(live)
    starts(live, submit(live, time_limit=3600))
    submit(live, 2, priority="high")
    job = submit(live)
    assert {"priority": "urgent"} in [each["change"] for each in alternatives(live, job)]
    live.client.post("/api/v1/users", json={"name": "eve"}).raise_for_status()
    live.client.put("/api/v1/projects/default/members/eve").raise_for_status()
    token = {"name": "eve's", "user": "eve", "scopes": ["read"]}
    secret = live.client.post("/api/v1/tokens", json=token).raise_for_status().json()["secret"]
    with live.as_token(secret) as eve:
        seen = eve.get(f"/api/v1/jobs/{job['id']}/why").raise_for_status().json()["alternatives"]
    assert not any("priority" in each["change"] for each in seen)


def test_held_jobs_dependencies_and_quotas(live: Live) -> None:
    add_node(live, devices=3)
    first = submit(live)
    starts(live, first)
    after = submit(live, after=[first["id"]])
    found = why(live, after["id"])
    assert (found["reasons"][0]["code"], found["reasons"][0]["jobs"]) == ("dependency", [first["id"]])
    assert f"waits for the success of job {first['number']} (" in found["summary"]
    assert (found["expected_start_at"], found["alternatives"]) == (None, [])
    with live.context.db.write() as tx:
        user = tx.scalar(select(Job.user_id).where(Job.id == first["id"]))
        tx.execute(insert(Account).values(kind="user", name=user, max_gpus=2))
    job = submit(live, 2)
    found = why(live, job["id"])
    assert (found["reasons"][0]["code"], found["reasons"][0]["jobs"]) == ("quota", [first["id"]])
    assert f"2 GPUs at once, which job {first['number']} (" in found["reasons"][0]["message"]
    live.client.post(f"/api/v1/jobs/{job['id']}/hold").raise_for_status()
    assert why(live, job["id"])["alternatives"] == [], "its quota is still used"
    live.client.post(f"/api/v1/jobs/{first['id']}/cancel").raise_for_status()
    (released,) = alternatives(live, job)
    assert released["command"] == f"yard release {job['number']}"
    starts(live, take(live, job, released))


def report_steps(live: Live, job_id: str, attempt_id: str, started_us: int) -> None:
    """100 of 400 steps, one each second."""
    with live.context.db.write() as tx:
        key = {"id": 1, "job_id": job_id, "attempt_id": attempt_id, "attempt": 1, "stream": "0", "rank": 0}
        tx.execute(
            insert(MetricSeries).values(**key, name="loss", last_step=100, last_time_us=started_us + 100 * SECOND)
        )
        steps = [{"series_id": 1, "seq": n, "step": n, "time_us": started_us + n * SECOND} for n in range(101)]
        tx.execute(insert(MetricPoint), steps)
        tx.execute(update(Job).where(Job.id == job_id).values(step=100, total_steps=400))


def test_a_job_that_runs_and_one_that_waits_for_it(live: Live) -> None:
    add_node(live)
    started_us = live.context.now_us() - 100 * SECOND
    job_id, attempt_id = runs(live, gpus=2)
    report_steps(live, job_id, attempt_id, started_us)
    found = why(live, job_id)
    assert [reason["code"] for reason in found["reasons"]] == ["running", "placement", "end"]
    assert found["reasons"][1]["message"] == "has GPUs 0, 1 of node box"
    assert found["reasons"][2]["message"].endswith("by the speed of its own steps")
    assert found["expected_end_at"] <= found["expected_end_p90_at"]
    waiting = submit(live)
    seen = why(live, waiting["id"])
    assert (seen["position"], seen["reasons"][0]["jobs"]) == (1, [job_id])
    (entry,) = live.client.get("/api/v1/queue").raise_for_status().json()["items"]
    assert "has 0 GPUs free and the job needs 1; the rest is held by job" in entry["reason"]
    told = (seen["expected_start_at"], seen["reasons"][0]["until"], entry["expected_start_at"])
    ends = datetime.fromisoformat(found["expected_end_at"])
    assert all(abs(datetime.fromisoformat(each) - ends) <= timedelta(minutes=1) for each in told)
    assert seen["expected_start_at"] <= seen["expected_start_p90_at"]


def test_what_happened_to_a_job_before(live: Live) -> None:
    add_node(live)
    job_id, attempt_id = runs(live)
    with live.context.db.write() as tx:
        lifecycle.request_stop(tx, job_id, StopReason.PREEMPT, None, live.context.now_us())
    assert "is stopping because it was preempted" in why(live, job_id)["summary"]
    result = Result(kind=ResultKind.EXITED, exit_code=0, stopped_at_step=70, started_us=1, ended_us=2)
    with live.context.db.write() as tx:
        lifecycle.finish(tx, attempt_id, result, live.context.now_us())
    told = [each["message"] for each in why(live, job_id)["reasons"] if each["code"] == "before"]
    assert told == ["what happened to it before: preempted after a checkpoint at step 70"]


def test_it_runs_since_its_present_attempt_began(live: Live) -> None:
    add_node(live)
    job_id, attempt_id = runs(live)
    first = moment(box.attempt_row(live.context.db, attempt_id).started_us)
    assert why(live, job_id)["summary"].endswith(f" since {first:%Y-%m-%d %H:%M:%S} UTC.")
    with live.context.db.write() as tx:
        row = box.job_row(live.context.db, job_id)
        tx.execute(update(Job).where(Job.id == job_id).values(started_us=row.started_us - 86400 * SECOND))
    before = first - timedelta(days=1)
    told = f" since {first:%Y-%m-%d %H:%M:%S} UTC; it first started on {before:%Y-%m-%d %H:%M:%S} UTC."
    assert why(live, job_id)["summary"].endswith(told)


def test_the_worth_of_estimates(live: Live) -> None:
    add_node(live)
    estimator = live.context.estimator
    assert live.client.get("/api/v1/queue/calibration").raise_for_status().json() == {"sources": []}
    for _ in range(2):
        job_id, attempt_id = runs(live)
        now = live.context.now_us()
        result = Result(kind=ResultKind.EXITED, exit_code=0, started_us=now, ended_us=now + 60 * SECOND)
        with live.context.db.write() as tx:
            estimator.begin(tx, job_id, now)
            lifecycle.finish(tx, attempt_id, result, now)
            estimator.done(tx, job_id, now)
    (source,) = live.client.get("/api/v1/queue/calibration").raise_for_status().json()["sources"]
    assert (source["source"], source["n"], source["p10"], source["p90"]) == ("history", 1, 0, 1)
    assert source["median_relative_error"] < 0.1
