"""`gpus: all` over REST: a number that the box can give, or a refusal; never a job that waits for ever."""

from typing import Any

import pytest
from sqlalchemy import update

from service.db.models import Device, Node
from tests.support import box
from tests.support.live import Live

COMMAND = {"name": "x", "command": ["true"], "launcher": "none"}


def submitted(service: Live, **resources: Any) -> tuple[int, str]:
    """The stored number, and what the job's first event says."""
    answer = service.client.post("/api/v1/jobs", json={**COMMAND, "resources": {"gpus": "all", **resources}})
    assert answer.status_code == 201, answer.text
    job = answer.json()
    events = service.client.get(f"/api/v1/jobs/{job['id']}/events").json()["items"]
    return job["spec"]["resources"]["gpus"], events[0]["message"]


def refusal(service: Live, **resources: Any) -> tuple[str, str]:
    answer = service.client.post("/api/v1/jobs", json={**COMMAND, "resources": {"gpus": "all", **resources}})
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    return error["field"], error["message"]


def change(service: Live, table: Any, *where: Any, **values: Any) -> None:
    with service.context.db.write() as tx:
        tx.execute(update(table).where(*where).values(**values))


def test_it_is_what_the_largest_node_has(live_service: Live) -> None:
    box.add_node(live_service.context.db, "small", devices=2)
    box.add_node(live_service.context.db, "large", devices=4)
    gpus, said = submitted(live_service)
    assert gpus == 4
    assert "; gpus 4, all that a node can give" in said
    assert submitted(live_service, nodes=2)[0] == 2


def test_gpus_come_before_cpu_slots(live_service: Live) -> None:
    box.add_node(live_service.context.db, "slots", devices=8)
    change(live_service, Device, kind="cpu")
    assert submitted(live_service)[0] == 8
    box.add_node(live_service.context.db, "cards", devices=3)
    assert submitted(live_service)[0] == 3


def test_only_what_can_be_had_counts(live_service: Live) -> None:
    box.add_node(live_service.context.db, "good", devices=4)
    box.add_node(live_service.context.db, "silent", devices=8, unreachable=True)
    box.add_node(live_service.context.db, "drained", devices=8, draining=True)
    change(live_service, Device, Device.uuid == "good-gpu-3", unusable="it failed three jobs in a row")
    change(live_service, Device, Device.uuid == "good-gpu-2", name="T4")
    assert submitted(live_service)[0] == 3
    assert submitted(live_service, gpu_type="a100")[0] == 2


def test_a_quota_bounds_it(live_service: Live) -> None:
    box.add_node(live_service.context.db, devices=4)
    assert live_service.client.put("/api/v1/quotas/project/default", json={"max_gpus": 3}).status_code == 200
    gpus, said = submitted(live_service)
    assert (gpus, "; gpus 3, all that the quota allows" in said) == (3, True)


def test_where_nothing_could_run_it_the_refusal_says_so(live_service: Live) -> None:
    field, message = refusal(live_service)
    assert field == "resources.gpus"
    assert "no node with usable devices is online" in message
    box.add_node(live_service.context.db)
    assert refusal(live_service, gpu_type="H200")[0] == "resources.gpu_type"
    assert refusal(live_service, cpus=0)[0] == "resources.cpus"
    change(live_service, Node, unreachable=True)
    assert "give a number, or start a worker" in refusal(live_service)[1]


@pytest.mark.parametrize("gpus", ["most", 1.5, None])
def test_no_other_word_is_taken(live_service: Live, gpus: object) -> None:
    assert refusal(live_service, gpus=gpus)[0] == "resources.gpus"
