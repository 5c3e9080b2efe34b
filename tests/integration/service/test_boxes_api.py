"""Nodes, queue and explanations over HTTP, with the loops running."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update

from service import lifecycle
from service.db.models import Device, Node
from service.scheduler.model.nodes import Placement
from tests.support import box
from tests.support.live import Live, serve, yard_home  # noqa: F401  fixtures
from tests.support.specs import spec
from tests.support.wait import until
from torchyard.states import StopReason


@pytest.fixture
def live(serve: Callable[..., Any]) -> Any:  # noqa: F811
    with serve() as running:
        box.add_ada(running.context.db)
        yield running


def add_node(live: Live, name: str = "box", devices: int = 2) -> list[str]:
    return box.add_node(live.context.db, name, devices, last_seen_us=live.context.now_us())


def test_a_job_is_given_gpus_at_once(live: Live) -> None:
    add_node(live)
    job_id = box.add_job(live.context.db, gpus=2)
    live.context.wake_scheduler()
    until(lambda: box.job_row(live.context.db, job_id).state == "assigned")
    node = live.client.get("/api/v1/nodes").raise_for_status().json()["items"][0]
    assert node["state"] == "online"
    assert [device["job"] for device in node["devices"]] == [job_id, job_id]
    assert [device["user"] for device in node["devices"]] == ["ada", "ada"]
    why = live.client.get(f"/api/v1/jobs/{job_id}/why").raise_for_status().json()
    assert "on the way to node box" in why["summary"]


def test_a_shared_gpu_names_all_who_have_it(live: Live) -> None:
    add_node(live, devices=1)
    jobs = [box.add_job(live.context.db, resources={"gpu_share": size}) for size in ("30GiB", "20GiB")]
    live.context.wake_scheduler()
    until(lambda: all(box.job_row(live.context.db, job).state == "assigned" for job in jobs))
    (device,) = live.client.get("/api/v1/nodes").raise_for_status().json()["items"][0]["devices"]
    assert [(holder["job_number"], holder["share"]) for holder in device["holders"]] == [
        (1, 30 * box.GIB),
        (2, 20 * box.GIB),
    ]
    assert device["job_number"] == 1
    assert "torchyard_gpus_held 1.0" in live.client.get("/metrics").text


def test_the_queue_names_who_holds_what(live: Live) -> None:
    add_node(live, devices=1)
    first, second = box.add_job(live.context.db), box.add_job(live.context.db, name="second")
    live.context.wake_scheduler()
    until(lambda: box.job_row(live.context.db, first).state == "assigned")
    answer = live.client.get("/api/v1/queue").raise_for_status()
    (entry,) = answer.json()["items"]
    assert (entry["position"], entry["job"], entry["name"], entry["user"]) == (1, second, "second", "ada")
    assert "0 GPUs free and the job needs 1; the rest is held by job 1 (ada)" in entry["reason"]
    again = live.client.get("/api/v1/queue", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304
    why = live.client.get(f"/api/v1/jobs/{second}/why").json()
    assert (why["position"], why["reasons"][0]["code"], why["reasons"][0]["jobs"]) == (1, "gpus", [first])


def test_pages_of_the_queue(live: Live) -> None:
    # New ones: those of `box` are overdue, and twice a day it is their turn.
    jobs = [live.client.post("/api/v1/jobs", json=spec()).raise_for_status().json()["id"] for _ in range(5)]
    seen: list[str] = []
    cursor = None
    while True:
        params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = live.client.get("/api/v1/queue", params=params).raise_for_status().json()
        seen += [entry["job"] for entry in page["items"]]
        if (cursor := page["next"]) is None:
            break
    assert seen == jobs
    assert live.client.get("/api/v1/queue", params={"cursor": "x"}).status_code == 422


def test_draining_stops_new_jobs_and_resuming_lets_them_in(live: Live) -> None:
    uuids = add_node(live)
    running = box.add_job(live.context.db)
    live.context.wake_scheduler()
    until(lambda: box.job_row(live.context.db, running).state == "assigned")
    assert live.client.post("/api/v1/nodes/box/drain").raise_for_status().json()["state"] == "draining"
    job_id = box.add_job(live.context.db)
    why = live.client.get(f"/api/v1/jobs/{job_id}/why").json()
    assert why["reasons"][0]["code"] == "draining"
    with pytest.raises(lifecycle.Conflict, match="no new jobs"):
        box.assign(live.context.db, job_id, uuids[1:])
    assert live.client.post("/api/v1/nodes/box/resume").raise_for_status().json()["state"] == "online"
    until(lambda: box.job_row(live.context.db, job_id).state == "assigned")
    assert live.client.post("/api/v1/nodes/nowhere/drain").status_code == 404


def test_a_drain_may_ask_the_jobs_to_stop(live: Live) -> None:
    uuids = add_node(live)
    with live.context.db.write() as tx:  # in one transaction, before the scheduler sees the job
        job_id = box.insert_job(tx)
        attempt_id = lifecycle.assign(tx, job_id, [Placement(node="box", uuids=tuple(uuids[:1]))], box.NOW)
        lifecycle.claim(tx, attempt_id, "box", "nonce", box.NOW)
        lifecycle.mark_running(tx, attempt_id, box.NOW)
    live.client.post("/api/v1/nodes/box/drain", params={"stop_jobs": True}).raise_for_status()
    job = box.job_row(live.context.db, job_id)
    assert (job.state, job.stop) == ("stopping", StopReason.DRAIN)
    assert job.stop_actor is not None
    why = live.client.get(f"/api/v1/jobs/{job_id}/why").json()
    assert "is stopping because its node is draining" in why["summary"]


def test_only_a_silent_node_can_be_declared_dead(live: Live) -> None:
    uuids = add_node(live)
    assert live.client.post("/api/v1/nodes/box/declare-dead").status_code == 409
    with live.context.db.write() as tx:
        job_id = box.insert_job(tx)
        attempt_id = lifecycle.assign(tx, job_id, [Placement(node="box", uuids=tuple(uuids[:1]))], box.NOW)
        lifecycle.claim(tx, attempt_id, "box", "nonce", box.NOW)
        tx.execute(update(Node).values(unreachable=True))
        lifecycle.set_unreachable(tx, "box", box.NOW)
    why = live.client.get(f"/api/v1/jobs/{job_id}/why").json()
    assert "may still be running on node box" in why["summary"]
    live.client.post("/api/v1/nodes/box/declare-dead").raise_for_status()
    assert box.job_row(live.context.db, job_id).state == "queued"
    told = live.client.get(f"/api/v1/jobs/{job_id}/events").json()["items"]
    requeued = next(event for event in told if event["kind"] == "requeued")
    assert "says that node box is gone" in requeued["message"]
    assert requeued["data"]["error"]["cause"] == "lost"


def test_reasons_of_jobs_that_do_not_wait_for_gpus(live: Live) -> None:
    held = box.add_job(live.context.db)
    with live.context.db.write() as tx:
        lifecycle.hold(tx, held, "ada", box.NOW)
    assert live.client.get(f"/api/v1/jobs/{held}/why").json()["reasons"][0]["code"] == "held"
    waiting = box.add_job(live.context.db)
    assert live.client.get(f"/api/v1/jobs/{waiting}/why").json()["reasons"][0]["code"] == "no-nodes"
    with live.context.db.write() as tx:
        lifecycle.request_stop(tx, waiting, StopReason.CANCEL, "ada", box.NOW)
    assert "was cancelled by ada" in live.client.get(f"/api/v1/jobs/{waiting}/why").json()["summary"]
    assert live.client.get("/api/v1/jobs/job-none/why").status_code == 404


def test_metrics_for_prometheus(live: Live) -> None:
    add_node(live)
    box.add_job(live.context.db, gpus=2)
    live.context.wake_scheduler()
    until(lambda: 'torchyard_jobs{state="assigned"} 1.0' in live.client.get("/metrics").text)
    text = live.client.get("/metrics").text
    assert "torchyard_gpus 2.0" in text
    assert "torchyard_gpus_held 2.0" in text
    assert 'torchyard_http_requests_total{method="GET",route="/metrics",status="200"}' in text
    assert "torchyard_scheduler_pass_seconds_count" in text
    assert live.anonymous.get("/metrics").status_code == 401


def test_only_administrators_drain(live: Live) -> None:
    add_node(live)
    with live.as_token(live.node_token) as node:
        assert node.post("/api/v1/nodes/box/drain").status_code == 403
        assert node.get("/api/v1/nodes").status_code == 403


def test_why_a_node_drains_is_told_until_it_is_resumed(live: Live) -> None:
    add_node(live)
    drained = live.client.post("/api/v1/nodes/box/drain", json={"message": "new fan"}).raise_for_status().json()
    assert (drained["state"], drained["drain_message"]) == ("draining", "new fan")
    (entry,) = live.client.get("/api/v1/audit").json()["items"]
    assert entry["data"] == {"stop_jobs": False, "message": "new fan"}
    box.add_job(live.context.db, gpus=1)
    (job,) = live.client.get("/api/v1/jobs").json()["items"]
    assert "(new fan)" in live.client.get(f"/api/v1/jobs/{job['id']}/why").text
    assert live.client.post("/api/v1/nodes/box/drain", json={"message": "a\x1b[31m"}).status_code == 422
    assert live.client.post("/api/v1/nodes/box/resume").json()["drain_message"] is None
    assert live.client.post("/api/v1/nodes/box/drain").json()["drain_message"] is None


def test_a_device_in_quarantine_is_returned_by_its_number(live: Live) -> None:
    uuids = add_node(live)
    with live.context.db.write() as tx:
        broken = {"unusable": "in quarantine: Xid 79", "fault": "Xid 79"}
        tx.execute(update(Device).where(Device.uuid == uuids[1]).values(**broken))
    path = "/api/v1/nodes/box/devices/{}/return"
    assert live.client.post(path.format(0)).status_code == 409
    node = live.client.post(path.format(1)).raise_for_status().json()
    assert [device["unusable"] for device in node["devices"]] == [None, None]
    assert live.client.post("/api/v1/nodes/nowhere/devices/1/return").status_code == 404
    (entry,) = live.client.get("/api/v1/audit").json()["items"]
    assert (entry["action"], entry["subject"], entry["data"]) == ("node.return-device", "box", {"device": 1})
