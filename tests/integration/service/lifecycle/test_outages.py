"""Outages begin and end with the states that keep jobs away, in the same transaction."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, update

from service import lifecycle
from service.db.engine import Database
from service.db.models import Device, Node, Outage, Reservation
from service.nodes import heartbeats, maintenance, registration
from tests.support import box
from tests.support.box import NOW
from torchyard import wire

XID = "Xid 79 (it has fallen off the bus): reset the GPU, or reboot the node"
WHY = f"{XID}, then `yard nodes --return box:0` (for an administrator)"
#: What a job's end says of a fault of its GPU.
FAULT = {"exit_code": 1, "failed_rank": 0, "fingerprint": "gpu-fault"}
Span = tuple[str | None, str, str, int, int | None]


@pytest.fixture
def yard(db: Database) -> Database:
    box.add_people(db)
    box.add_node(db)
    return db


def at(db: Database, seconds: int, change: Callable[..., Any], *given: Any) -> None:
    """Make a change in a transaction so many seconds after the beginning."""
    with db.unit_of_work(NOW + seconds * 1_000_000) as unit:
        change(unit.tx, *given)


def beat(tx: Connection, fault: str | None = None, unusable: str | None = None) -> None:
    """A heartbeat of the node, whose first GPU may be broken or kept from jobs."""
    devices = [
        wire.Device(uuid=f"box-gpu-{index}", index=index, kind=wire.DeviceKind.GPU, name="A100", memory=80 * box.GIB)
        for index in range(2)
    ]
    devices[0] = devices[0].model_copy(update={"fault": fault, "unusable": unusable})
    identity = wire.Identity(node_id="machine-box", home_id="home-box", boot_id="boot-1", pid_namespace="pid-1")
    heartbeats.record(tx, "box", wire.Heartbeat(identity=identity, devices=devices, attempts=[], disk_free=1), NOW)


def second(us: int) -> int:
    return (us - NOW) // 1_000_000


def told(db: Database) -> list[Span]:
    """All outages: of which device, its kind and reason, and its seconds from and to."""
    with db.read() as tx:
        rows = tx.execute(select(Outage.__table__).order_by(Outage.id)).all()
    return [
        (row.uuid, row.kind, row.reason, second(row.started_us), row.ended_us and second(row.ended_us)) for row in rows
    ]


def test_a_quarantine_lasts_until_the_device_is_returned(yard: Database) -> None:
    at(yard, 1, beat)
    at(yard, 2, beat, XID)
    at(yard, 3, beat, XID)
    at(yard, 4, beat)  # a worker that was started again knows of no fault
    assert told(yard) == [("box-gpu-0", "quarantine", WHY, 2, None)]
    at(yard, 5, beat, XID)
    at(yard, 6, registration.return_device, "box", "0")
    at(yard, 7, beat, XID)  # with this one it was returned
    at(yard, 8, beat, "another")
    at(yard, 9, registration.set_draining, "box", False)
    other = "another, then `yard nodes --return box:0` (for an administrator)"
    assert told(yard) == [("box-gpu-0", "quarantine", WHY, 2, 6), ("box-gpu-0", "quarantine", other, 8, 9)]


def test_a_device_that_vanishes_in_quarantine_comes_back_in_it(yard: Database) -> None:
    at(yard, 1, beat, XID)
    with yard.write() as tx:
        tx.execute(update(Device).where(Device.uuid == "box-gpu-0").values(present=False))
    at(yard, 2, beat)
    assert told(yard) == [("box-gpu-0", "quarantine", WHY, 1, None)]


def test_what_changes_twice_at_once_is_told_once(yard: Database) -> None:
    """As where a job's end condemns the device of whose fault the same heartbeat tells."""
    at(yard, 1, lambda tx: [registration.set_draining(tx, "box", True, why) for why in ("new fan", "new disks")])
    assert told(yard) == [(None, "drain", "new disks", 1, None)]
    at(yard, 0, registration.set_draining, "box", False)  # the clock was set back
    assert told(yard) == []


def test_another_fault_is_another_outage(yard: Database) -> None:
    at(yard, 1, beat, "first")
    at(yard, 2, beat, "second")
    assert [(reason.split(",")[0], *span) for _, _, reason, *span in told(yard)] == [
        ("first", 1, 2),
        ("second", 2, None),
    ]


def test_what_frees_itself_is_no_outage(yard: Database) -> None:
    at(yard, 1, beat, None, "process 7 (python) holds about 20 GiB of it: jobs wait until that has ended")
    assert told(yard) == []


def test_a_device_under_which_job_after_job_fails_is_out_from_the_last_ones_end(yard: Database) -> None:
    for _ in range(3):
        box.finish(yard, box.start(yard, box.add_job(yard), ["box-gpu-0"]), **FAULT)
    [(uuid, kind, reason, _, ended)] = told(yard)
    assert (uuid, kind, ended) == ("box-gpu-0", "quarantine", None)
    assert reason.startswith("failed under the last 3 jobs: ")


def test_a_drain_lasts_until_the_node_is_resumed_and_a_new_message_begins_another(yard: Database) -> None:
    at(yard, 1, registration.set_draining, "box", True, "new fan")
    at(yard, 2, registration.set_draining, "box", True, "new fan")
    at(yard, 3, registration.set_draining, "box", True)
    at(yard, 4, registration.set_draining, "box", False)
    assert told(yard) == [(None, "drain", "new fan", 1, 3), (None, "drain", "", 3, 4)]


def test_silence_lasts_until_the_node_is_heard(yard: Database) -> None:
    at(yard, 1, registration.set_draining, "box", True)
    at(yard, 2, registration.mark_unreachable, "box", NOW, NOW)
    at(yard, 3, registration.mark_unreachable, "box", NOW, NOW)
    at(yard, 4, beat)
    at(yard, 5, beat)
    assert told(yard) == [(None, "drain", "", 1, None), (None, "unreachable", "", 2, 4)]


def test_maintenance_is_told_by_its_name_and_ends_where_an_administrator_drains(yard: Database) -> None:
    span = {"starts_us": NOW, "ends_us": NOW + 60_000_000, "created_by": "user-ada", "created_us": NOW}
    with yard.write() as tx:
        of = {"id": "res-1", "name": "new disks", "maintenance": True, "users": [], "projects": [], "nodes": ["box"]}
        tx.execute(insert(Reservation).values(**of, **span))
    maintenance.reconcile(yard, NOW + 1_000_000)
    at(yard, 2, registration.set_draining, "box", True, "by hand")
    assert told(yard) == [(None, "maintenance", "new disks", 1, None)]
    at(yard, 3, maintenance.keep_drained, "box")
    assert told(yard) == [(None, "maintenance", "new disks", 1, 3), (None, "drain", "by hand", 3, None)]


def test_a_change_that_is_taken_back_leaves_no_outage(yard: Database) -> None:
    with pytest.raises(lifecycle.Unknown):
        at(yard, 1, lambda tx: [registration.set_draining(tx, name, True) for name in ("box", "nowhere")])
    assert told(yard) == []
    with yard.read() as tx:
        assert not tx.scalar(select(Node.draining))


def test_nodes_and_devices_have_their_own(yard: Database) -> None:
    box.add_node(yard, "other")
    at(yard, 1, registration.set_draining, "box", True)
    at(yard, 2, beat, XID)
    at(yard, 3, registration.set_draining, "other", True)
    at(yard, 4, registration.set_draining, "other", False)
    with yard.write() as tx:
        tx.execute(update(Node).where(Node.name == "box").values(draining=False))
    at(yard, 5, lifecycle.record_node_outages, "box")
    assert told(yard) == [
        (None, "drain", "", 1, 5),
        ("box-gpu-0", "quarantine", WHY, 2, None),
        (None, "drain", "", 3, 4),
    ]
