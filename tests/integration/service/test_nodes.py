"""Registration, heartbeats, and what they prove."""

from typing import Any

import pytest
from sqlalchemy import select, update

from service import lifecycle, nodes
from service.db.engine import Database
from service.db.models import Device, Node
from tests.support import box
from tests.support.box import GIB, NOW
from torchyard import wire
from torchyard.states import JobState
from torchyard.wire import Action, AttemptReport, Phase

IDENTITY = wire.Identity(node_id="machine-box", home_id="home-box", boot_id="boot-1", pid_namespace="pid-1")


def device(index: int, **changes: Any) -> wire.Device:
    fields = {"uuid": f"box-gpu-{index}", "index": index, "kind": "gpu", "name": "A100", "memory": 80 * GIB}
    return wire.Device(**(fields | changes))


def heartbeat(*attempts: tuple[str, Phase], beat: int | None = None, **changes: Any) -> wire.Heartbeat:
    fields = {
        "identity": IDENTITY,
        "devices": [device(0), device(1)],
        "attempts": [AttemptReport(attempt=a, phase=phase) for a, phase in attempts],
        "disk_free": 50 * GIB,
        "beat": beat,
    }
    return wire.Heartbeat(**(fields | changes))


def register(db: Database, **changes: Any) -> None:
    fields: dict[str, Any] = {
        "node": "box",
        "identity": IDENTITY,
        "version": "0.1.0",
        "hostname": "box.example",
        "devices": [device(0), device(1)],
        "cpus": 64,
        "memory": 256 * GIB,
        "runs_as_root": False,
    }
    with db.write() as tx:
        nodes.register(tx, wire.Register(**(fields | changes)), NOW, 5.0)


def seen(db: Database, message: wire.Heartbeat, now: int = NOW) -> nodes.Seen:
    with db.write() as tx:
        return nodes.seen(tx, "box", message, now)


def devices(db: Database) -> dict[str, tuple[bool, str | None]]:
    with db.read() as tx:
        rows = tx.execute(select(Device.uuid, Device.present, Device.unusable))
        return {row.uuid: (row.present, row.unusable) for row in rows}


@pytest.fixture
def yard(db: Database) -> Database:
    box.add_people(db)
    register(db)
    return db


def test_an_unknown_node_must_register_first(db: Database) -> None:
    with pytest.raises(lifecycle.Unknown, match="not registered"):
        seen(db, heartbeat())


def test_beats_count_up_and_wake_only_when_something_changed(yard: Database) -> None:
    first, second = seen(yard, heartbeat()), seen(yard, heartbeat(beat=1))
    assert (first.orders.beat, first.wake) == (1, True)
    assert (second.orders.beat, second.wake) == (2, False)
    with yard.read() as tx:
        assert tx.scalar(select(Node.disk_free)) == 50 * GIB


def test_devices_that_vanish_return_or_break(yard: Database) -> None:
    assert seen(yard, heartbeat(devices=[device(1, unusable="stuck")])).wake
    assert devices(yard) == {"box-gpu-0": (False, None), "box-gpu-1": (True, "stuck")}
    assert seen(yard, heartbeat()).wake
    assert devices(yard) == {"box-gpu-0": (True, None), "box-gpu-1": (True, None)}


def test_a_name_belongs_to_one_machine_while_it_is_heard(yard: Database) -> None:
    seen(yard, heartbeat())
    with pytest.raises(lifecycle.Conflict, match="another name"):
        register(yard, identity=IDENTITY.model_copy(update={"node_id": "machine-two"}))
    register(yard, identity=IDENTITY.model_copy(update={"boot_id": "boot-2"}))
    with yard.write() as tx:
        tx.execute(update(Node).values(last_seen_us=NOW - 60_000_000))
    register(yard, identity=IDENTITY.model_copy(update={"node_id": "machine-two"}))


def test_an_attempt_that_is_missing_after_its_claim_is_dead(yard: Database) -> None:
    beat = seen(yard, heartbeat()).orders.beat
    job_id = box.add_job(yard, max_retries=1)
    attempt_id = box.start(yard, job_id, ["box-gpu-0"])
    # this inventory was begun before the claim, as far as the service can tell
    answer = seen(yard, heartbeat(beat=beat))
    assert box.job_row(yard, job_id).state == JobState.RUNNING
    again = seen(yard, heartbeat(beat=answer.orders.beat))
    assert again.changed == [job_id]
    assert again.wake
    job = box.job_row(yard, job_id)
    assert (job.state, job.retries_used) == (JobState.QUEUED, 1)
    assert "found none" in box.attempt_row(yard, attempt_id).result["message"]


def test_a_delayed_heartbeat_proves_nothing(yard: Database) -> None:
    old = heartbeat(beat=seen(yard, heartbeat()).orders.beat)
    job_id = box.add_job(yard)
    attempt_id = box.start(yard, job_id, ["box-gpu-0"])
    for _ in range(3):
        seen(yard, heartbeat((attempt_id, Phase.RUNNING), beat=1))
        seen(yard, old)
    assert box.job_row(yard, job_id).state == JobState.RUNNING


def test_a_reboot_ends_what_ran_but_not_what_was_claimed_since(yard: Database) -> None:
    seen(yard, heartbeat())
    before, after = box.add_job(yard), box.add_job(yard)
    dead = box.start(yard, before, ["box-gpu-0"])
    with yard.write() as tx:
        lifecycle.set_unreachable(tx, "box", NOW)
    rebooted = IDENTITY.model_copy(update={"boot_id": "boot-2", "home_id": "other"})
    register(yard, identity=rebooted)
    beat = seen(yard, heartbeat(identity=rebooted)).orders.beat
    box.start(yard, after, ["box-gpu-1"])
    seen(yard, heartbeat(identity=rebooted, beat=beat))
    assert box.job_row(yard, before).error["cause"] == "lost"
    assert "booted again" in box.attempt_row(yard, dead).result["message"]
    assert box.job_row(yard, after).state == JobState.RUNNING


def test_a_node_that_returns_goes_on(yard: Database) -> None:
    seen(yard, heartbeat())
    job_id = box.add_job(yard)
    attempt_id = box.start(yard, job_id, ["box-gpu-0"])
    with yard.write() as tx:
        assert nodes.mark_unreachable(tx, "box", NOW - 1, NOW) == []  # it was heard since
        assert nodes.mark_unreachable(tx, "box", NOW, NOW) == [job_id]
        assert nodes.mark_unreachable(tx, "box", NOW, NOW) == []
    assert box.job_row(yard, job_id).state == JobState.UNREACHABLE
    back = seen(yard, heartbeat((attempt_id, Phase.RUNNING)))
    assert (back.changed, back.wake) == ([job_id], True)
    assert [order.action for order in back.orders.orders] == [Action.RUN]
    assert box.job_row(yard, job_id).state == JobState.RUNNING
