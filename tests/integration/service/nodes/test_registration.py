"""Registration, heartbeats, and what they prove."""

from typing import Any

import pytest
from sqlalchemy import select, update

from service import lifecycle
from service.db.engine import Database
from service.db.models import Device, Event, Job, Node
from service.db.records.jobs import JobRecord
from service.nodes import heartbeats, listing, registration
from service.queue import job_status
from service.scheduler.model.jobs import Running
from service.scheduler.model.nodes import Placement, ResourceRequest
from service.scheduler.model.state import SchedulerState
from tests.support import box
from tests.support.box import GIB, NOW
from tests.support.statements import asked, first
from tests.support.submissions import ADA
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
        registration.register(tx, wire.Register(**(fields | changes)), NOW, 5.0)


def seen(db: Database, message: wire.Heartbeat, now: int = NOW) -> heartbeats.HeartbeatReply:
    with db.write() as tx:
        return heartbeats.record(tx, "box", message, now)


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


def test_what_a_node_measures_is_noted_until_it_says_otherwise(yard: Database) -> None:
    held = [AttemptReport(attempt="att-1", phase=Phase.ENDED, held_us=5), AttemptReport(attempt="b", phase=Phase.ENDED)]
    for told, stored in (
        ({"attempts": held, "disk_floor": 7}, ({"att-1": 5}, 7)),
        ({}, (None, None)),
    ):
        seen(yard, heartbeat(**told))
        with yard.read() as tx:
            assert tuple(tx.execute(select(Node.held_us, Node.disk_floor)).one()) == stored


def test_what_a_worker_knows(db: Database) -> None:
    """Older workers say nothing, newer ones may say more than is known here."""
    for said, stored in ((None, None), ([], None), (["gpu-share", "teleport"], ["gpu-share", "teleport"])):
        register(db, **({} if said is None else {"capabilities": said}))
        with db.read() as tx:
            assert tx.scalar(select(Node.capabilities)) == stored


def test_a_node_that_registers_again_came_when_it_came_first(yard: Database) -> None:
    with yard.write() as tx:
        tx.execute(update(Node).values(registered_us=NOW - 5))
    register(yard)
    with yard.read() as tx:
        assert tx.scalar(select(Node.registered_us)) == NOW - 5


def test_devices_that_vanish_return_or_break(yard: Database) -> None:
    assert seen(yard, heartbeat(devices=[device(1, unusable="stuck")])).wake
    assert devices(yard) == {"box-gpu-0": (False, None), "box-gpu-1": (True, "stuck")}
    assert seen(yard, heartbeat()).wake
    assert devices(yard) == {"box-gpu-0": (True, None), "box-gpu-1": (True, None)}


def test_memory_that_others_hold_of_a_device_is_shown_and_makes_the_scheduler_look(yard: Database) -> None:
    beside = [device(0, foreign_memory=20 * GIB), device(1)]
    seen(yard, heartbeat())
    assert seen(yard, heartbeat(devices=beside)).wake
    assert not seen(yard, heartbeat(devices=beside)).wake
    shown = listing.get_node(yard, ADA, "box").devices
    assert [(each.memory, each.foreign_memory) for each in shown] == [(80 * GIB, 20 * GIB), (80 * GIB, None)]
    assert seen(yard, heartbeat()).wake


def test_a_device_whose_driver_tells_of_a_fault_is_in_quarantine_until_it_is_returned(yard: Database) -> None:
    """Whatever the worker forgets: it does not know of old Xids when it has started again."""
    told = "Xid 79 (it has fallen off the bus) at 2026-11-25 18:00:03 UTC: reset the GPU, or reboot the node"
    broken = {"devices": [device(0, fault=told), device(1)]}
    assert seen(yard, heartbeat(**broken)).wake
    why = f"in quarantine: {told}, then `yard nodes --return box:0` (for an administrator)"
    assert devices(yard) == {"box-gpu-0": (True, why), "box-gpu-1": (True, None)}
    seen(yard, heartbeat())
    register(yard)
    seen(yard, heartbeat())
    assert devices(yard)["box-gpu-0"] == (True, why)
    with yard.write() as tx:
        assert registration.return_device(tx, "box", "0") == 0
    assert devices(yard)["box-gpu-0"] == (True, None)
    with yard.write() as tx, pytest.raises(lifecycle.Conflict, match="device 0 of node box is not out of use"):
        registration.return_device(tx, "box", "0")


def shown(db: Database) -> list[wire.Finding | None]:
    return [each.finding for each in listing.get_node(db, ADA, "box").devices]


def test_a_finding_is_shown_while_its_words_are(yard: Database) -> None:
    fault = wire.Finding(code="broken", message="Xid 79", params={"xid": 79})
    stuck = wire.Finding(code="outlives-kill", message="process 7 outlives", params={"pid": 7})
    seen(yard, heartbeat(devices=[device(0).with_fault(fault).unusable_for(stuck), device(1).unusable_for(stuck)]))
    command = "yard nodes --return box:0"
    why = f"in quarantine: Xid 79, then `{command}` (for an administrator)"
    quarantined = wire.Finding(code="broken", message=why, params={"xid": 79, "return": command})
    assert shown(yard) == [quarantined, stuck]
    seen(yard, heartbeat(devices=[device(0).unusable_for(stuck), device(1)]))
    register(yard)  # which knows nothing of what runs on the devices
    assert shown(yard) == [quarantined, None]
    with yard.write() as tx:
        registration.return_device(tx, "box", "0")
    assert shown(yard) == [stuck, None]
    register(yard)
    assert shown(yard) == [stuck, None]
    assert not seen(yard, heartbeat(devices=[device(0).unusable_for(stuck), device(1)])).wake
    seen(yard, heartbeat(devices=[device(0, fault="it squeaks"), device(1)]))
    (told, _) = shown(yard)
    assert told is not None
    assert (told.code, told.params) == ("fault", {"said": "it squeaks", "return": command})


@pytest.mark.parametrize("first", ["fault", "unusable"])
def test_what_else_keeps_a_device_from_jobs_does_not_end_its_quarantine(yard: Database, first: str) -> None:
    told = {"fault": "Xid 79 (it has fallen off the bus): reset the GPU", "unusable": "process 7 (python) holds 20 GiB"}
    seen(yard, heartbeat(devices=[device(0, **{first: told[first]}), device(1)]))
    seen(yard, heartbeat(devices=[device(0, **told), device(1)]))
    seen(yard, heartbeat(devices=[device(0, unusable="stuck"), device(1)]))
    seen(yard, heartbeat())
    register(yard)
    seen(yard, heartbeat(devices=[device(0, unusable="stuck"), device(1)]))
    assert "in quarantine: Xid 79" in (devices(yard)["box-gpu-0"][1] or "")
    with yard.write() as tx:
        registration.return_device(tx, "box", "0")
    assert devices(yard)["box-gpu-0"] == (True, "stuck")
    register(yard)
    assert devices(yard)["box-gpu-0"] == (True, "stuck")
    seen(yard, heartbeat())
    assert devices(yard)["box-gpu-0"] == (True, None)


def test_a_fault_that_was_seen_to_does_not_count_again_and_a_new_one_does(yard: Database) -> None:
    for told, counts in (("1 error", True), ("1 error", False), ("2 errors", True), (None, False), ("2 errors", True)):
        seen(yard, heartbeat(devices=[device(0, fault=told), device(1)]))
        seen(yard, heartbeat(devices=[device(0, fault=told), device(1)]))
        why = devices(yard)["box-gpu-0"][1]
        assert (f"in quarantine: {told}" in why if why else False) is counts
        with yard.write() as tx:
            registration.set_draining(tx, "box", False)  # as `yard nodes --resume` does for all of them
        assert devices(yard)["box-gpu-0"] == (True, None)


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
    job_id = box.add_job(yard)
    attempt_id = box.start(yard, job_id, ["box-gpu-0"])
    # this inventory was begun before the claim, as far as the service can tell
    answer = seen(yard, heartbeat(beat=beat))
    assert box.job_row(yard, job_id).state == JobState.RUNNING
    again = seen(yard, heartbeat(beat=answer.orders.beat))
    assert again.changed == [job_id]
    assert again.wake
    job = box.job_row(yard, job_id)
    assert (job.state, job.retries_used) == (JobState.QUEUED, 0)
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
    assert box.job_row(yard, before).state == JobState.QUEUED
    assert "booted again" in box.attempt_row(yard, dead).result["message"]
    assert box.job_row(yard, after).state == JobState.RUNNING


def test_jobs_that_a_reboot_ends_are_locked_before_accounts_and_devices(yard: Database) -> None:
    seen(yard, heartbeat())
    jobs = [box.add_job(yard) for _ in range(2)]
    runs = [box.start(yard, job, [f"box-gpu-{index}"]) for index, job in enumerate(jobs)]
    beat = seen(yard, heartbeat(*[(attempt, Phase.RUNNING) for attempt in runs])).orders.beat
    identity, broken = IDENTITY.model_copy(update={"boot_id": "boot-2"}), device(1, unusable="stuck")
    rebooted = heartbeat(beat=beat, identity=identity, devices=[device(0), broken])
    with asked(yard) as told:
        seen(yard, rebooted, NOW + 1_000_000)
    locked = max(first(told, "SELECT jobs.id", run) for run in runs)
    assert locked < min(first(told, "INSERT INTO accounts"), first(told, "UPDATE devices", "stuck"))


def test_a_node_that_returns_goes_on(yard: Database) -> None:
    seen(yard, heartbeat())
    job_id = box.add_job(yard)
    attempt_id = box.start(yard, job_id, ["box-gpu-0"])
    with yard.write() as tx:
        assert registration.mark_unreachable(tx, "box", NOW - 1, NOW) == []  # it was heard since
        assert registration.mark_unreachable(tx, "box", NOW, NOW) == [job_id]
        assert registration.mark_unreachable(tx, "box", NOW, NOW) == []
    assert box.job_row(yard, job_id).state == JobState.UNREACHABLE
    back = seen(yard, heartbeat((attempt_id, Phase.RUNNING)))
    assert (back.changed, back.wake) == ([job_id], True)
    assert [order.action for order in back.orders.orders] == [Action.RUN]
    assert box.job_row(yard, job_id).state == JobState.RUNNING


def test_what_another_home_cannot_see_is_out_of_sight_until_an_administrator_speaks(yard: Database) -> None:
    """The worker's home was lost, or a second one took the name: nothing proves the job dead, nobody can stop it."""
    seen(yard, heartbeat())
    job_id = box.add_job(yard)
    box.start(yard, job_id, ["box-gpu-0"])
    other = IDENTITY.model_copy(update={"node_id": "machine-new", "home_id": "home-new"})
    with yard.write() as tx:
        tx.execute(update(Node).values(last_seen_us=NOW - 60_000_000))
    register(yard, identity=other)
    beat = seen(yard, heartbeat(identity=other)).orders.beat
    assert seen(yard, heartbeat(identity=other, beat=beat)).changed == [job_id]
    assert box.job_row(yard, job_id).state == JobState.UNREACHABLE
    assert seen(yard, heartbeat(identity=other, beat=beat + 1)).changed == []
    with yard.write() as tx:
        assert registration.declare_dead(tx, "box", "ada", NOW) == [job_id]
    assert box.job_row(yard, job_id).state == JobState.QUEUED
    with pytest.raises(lifecycle.Conflict, match="is heard"), yard.write() as tx:
        registration.declare_dead(tx, "box", "ada", NOW)


def test_the_first_home_takes_its_attempts_back(yard: Database) -> None:
    seen(yard, heartbeat())
    job_id = box.add_job(yard)
    attempt_id = box.start(yard, job_id, ["box-gpu-0"])
    other = IDENTITY.model_copy(update={"pid_namespace": "pid-2"})
    for _ in range(2):
        beat = seen(yard, heartbeat(identity=other)).orders.beat
        seen(yard, heartbeat(identity=other, beat=beat))
    assert box.job_row(yard, job_id).state == JobState.UNREACHABLE
    assert seen(yard, heartbeat((attempt_id, Phase.RUNNING))).changed == [job_id]
    assert box.job_row(yard, job_id).state == JobState.RUNNING


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.STOPPING, Phase.ENDED])
def test_a_claim_that_a_restored_database_has_forgotten_is_taken_over(yard: Database, phase: Phase) -> None:
    """Else it would be voided for want of a claim, and its job run twice."""
    seen(yard, heartbeat())
    job_id = box.add_job(yard)
    attempt_id = box.assign(yard, job_id, ["box-gpu-0"])
    assert seen(yard, heartbeat((attempt_id, Phase.PREPARING))).orders.assigned == [attempt_id]
    answer = seen(yard, heartbeat((attempt_id, phase)))
    assert (answer.changed, answer.orders.assigned) == ([job_id], [])
    with yard.write() as tx:
        lifecycle.mark_running(tx, attempt_id, NOW)
    assert box.finish(yard, attempt_id) is JobState.SUCCEEDED


def test_a_result_comes_before_the_heartbeat_that_tells_of_the_claim(yard: Database) -> None:
    job_id = box.add_job(yard)
    attempt_id = box.assign(yard, job_id, ["box-gpu-0"])
    assert box.finish(yard, attempt_id) is JobState.SUCCEEDED
    assert box.job_row(yard, job_id).ended_us == NOW + 3


def test_a_gpu_on_which_a_stranger_runs_is_given_to_nobody(yard: Database) -> None:
    """The database was restored: it knows nothing of an attempt that still trains, and never kills it."""
    stranger = AttemptReport(attempt="att-unknown", phase=Phase.RUNNING, devices=["box-gpu-1"])
    answer = seen(yard, heartbeat(attempts=[stranger]))
    assert answer.orders.orders == []
    assert answer.orders.forget == []
    assert "att-unknown, which is unknown here, runs on it" in str(devices(yard)["box-gpu-1"][1])
    register(yard)
    assert devices(yard)["box-gpu-1"][1] is not None
    assert seen(yard, heartbeat(attempts=[stranger.model_copy(update={"phase": Phase.ENDED})])).wake
    assert devices(yard)["box-gpu-1"][1] is None


def test_one_declared_dead_that_lives_keeps_its_gpu_and_still_brings_its_metrics(yard: Database) -> None:
    seen(yard, heartbeat())
    job_id = box.add_job(yard)
    attempt_id = box.start(yard, job_id, ["box-gpu-0"])
    with yard.write() as tx:
        registration.mark_unreachable(tx, "box", NOW, NOW)
        assert registration.declare_dead(tx, "box", "ada", NOW) == [job_id]
    report = AttemptReport(attempt=attempt_id, phase=Phase.RUNNING, devices=["box-gpu-0"])
    answer = seen(yard, heartbeat(attempts=[report]))
    assert [order.action for order in answer.orders.orders] == [Action.KILL]
    assert "was declared dead" in str(devices(yard)["box-gpu-0"][1])
    ended = heartbeat((attempt_id, Phase.ENDED))
    assert seen(yard, ended).orders.forget == []
    with yard.write() as tx:
        lifecycle.settle(tx, attempt_id, "box")
    assert seen(yard, ended).orders.forget == [attempt_id]


def test_offenders_are_shown_with_their_node_until_they_leave(yard: Database) -> None:
    words = "process 7 (python) of mallory uses GPU box-gpu-0, which the queue has given to nobody"
    finding = wire.Finding(code="on-free-gpu", message=words, params={"pid": 7, "holders": ("att-1",)})
    for offenders, findings in (([words], [finding]), ([words], []), ([], [])):
        seen(yard, heartbeat(offenders=offenders, offender_findings=findings))
        (node,) = listing.list_nodes(yard, ADA)
        assert (node.offenders, node.offender_findings) == (offenders, findings)


def test_labels_and_topology_are_stored_and_shown(yard: Database) -> None:
    near = wire.Topology(numa=1, links={"box-gpu-1": wire.LinkLevel.NVLINK})
    register(yard, labels=["ib", "fast-disk"], devices=[device(0, topology=near), device(1)])
    (node,) = listing.list_nodes(yard, ADA)
    assert node.labels == ["ib", "fast-disk"]
    assert [each.topology for each in node.devices] == [near, None]
    assert not seen(yard, heartbeat(devices=[device(0, topology=near), device(1)], beat=0)).changed
    register(yard)
    (node,) = listing.list_nodes(yard, ADA)
    assert node.labels == []


def test_what_its_kernel_enforces_is_shown(yard: Database) -> None:
    for limits, words in ((["memory-limit", "process-limit", "cpu-limit"], ["memory", "cpus", "processes"]), ([], [])):
        register(yard, capabilities=["gpu-share", *limits])
        (node,) = listing.list_nodes(yard, ADA)
        assert node.enforced == words


def test_why_its_kernel_enforces_nothing_is_shown(yard: Database) -> None:
    finding = wire.Finding(code="cgroups-off", message="switched off")
    for why, found in (("the worker is not root", None), ("switched off", finding), (None, None)):
        register(yard, unenforced=why, unenforced_finding=found)
        (node,) = listing.list_nodes(yard, ADA)
        assert (node.unenforced, node.unenforced_finding) == (why, found)


def joining(db: Database, job_id: str) -> tuple[list[str], list[str]]:
    """Events about ranks that join, and what `why` says of them."""
    with db.read() as tx:
        kinds = Event.kind.in_((lifecycle.UNJOINED, lifecycle.JOINED))
        told = tx.execute(select(Event.kind, Event.message).where(Event.job_id == job_id, kinds).order_by(Event.seq))
        job = JobRecord.one(tx.execute(select(Job.__table__).where(Job.id == job_id)))
        placement = Placement(node="box", uuids=("box-gpu-0",))
        running = Running(
            job=job_id,
            number=1,
            user="u",
            project="p",
            priority=1,
            resources=ResourceRequest(gpus=1),
            placements=(placement,),
            since_us=NOW,
        )
        reasons = job_status.why(tx, job, running, SchedulerState(), NOW).reasons
        warned = [each.message for each in reasons if each.code == lifecycle.UNJOINED]
        return [each.kind for each in told], warned


def test_ranks_that_have_not_joined_are_told_once_and_taken_back_when_they_have(yard: Database) -> None:
    job_id = box.add_job(yard)
    attempt_id = box.start(yard, job_id, ["box-gpu-0"])
    alone = AttemptReport(attempt=attempt_id, phase=Phase.RUNNING, started_us=NOW, unjoined=True)
    met = alone.model_copy(update={"unjoined": False})
    unreadable = met.model_copy(update={"started_us": None})
    with yard.write() as tx:
        lifecycle.mark_running(tx, attempt_id, NOW)
    for report, changed in ((met, []), (alone, [job_id]), (alone, []), (unreadable, [])):
        assert seen(yard, heartbeat(attempts=[report])).changed == changed
    kinds, (warning,) = joining(yard, job_id)
    assert kinds == [lifecycle.UNJOINED]
    assert "launcher: python" in warning
    for changed in ([job_id], []):
        assert seen(yard, heartbeat(attempts=[met])).changed == changed
    assert joining(yard, job_id) == ([lifecycle.UNJOINED, lifecycle.JOINED], [])


def test_a_node_that_is_not_heard_still_tells_that_it_was_drained(db: Database) -> None:
    box.add_node(db, unreachable=True)
    with db.write() as tx:
        registration.set_draining(tx, "box", draining=True)
    [node] = listing.list_nodes(db, ADA)
    assert (node.state, node.draining) == ("unreachable", True)
    with db.write() as tx:
        registration.set_draining(tx, "box", draining=False)
    assert not listing.list_nodes(db, ADA)[0].draining
