"""Who has had the devices, has them, and is expected to get them; on both databases."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, update

from service import lifecycle
from service.db import models
from service.db.models import Allocation, Attempt, Job
from service.identity.callers import Caller, expand
from service.identity.visibility import HIDDEN
from service.infra.times import moment
from service.nodes import outages as nodes_outages
from service.nodes import registration, reservations
from service.queue import timeline
from tests.support import box
from tests.support.recorded_context import RecordedContext
from torchyard.api import DeviceTimeline, Outage, Timeline
from torchyard.api.sharing import NewReservation
from torchyard.states import AttemptState, JobState

HOUR_US = 3600 * 1_000_000
UUIDS = ("box-gpu-0", "box-gpu-1")


def caller(name: str, scope: str = "read") -> Caller:
    return Caller(
        user_id=f"user-{name}", name=name, admin=scope == "admin", scopes=expand([scope]), node=None, token_id=""
    )


def load(yard: RecordedContext, reader: Caller | None = None, hours: int = 24) -> Timeline:
    ctx = yard.ctx
    return timeline.load(ctx.db, ctx.loader, ctx.now_us(), reader or caller("ada"), hours * HOUR_US)


def devices(found: Timeline) -> list[DeviceTimeline]:
    (node,) = found.nodes
    return node.devices


def spans(device: DeviceTimeline) -> list[tuple[int, Any, bool]]:
    return [(each.job, each.state, each.ends_at is None) for each in device.allocations]


def test_past_present_and_future_of_a_device(yard: RecordedContext) -> None:
    done, running = box.add_job(yard.ctx.db, name="done"), box.add_job(yard.ctx.db, gpus=2, time_limit="2h")
    box.finish(yard.ctx.db, box.start(yard.ctx.db, done, UUIDS[:1]))
    box.start(yard.ctx.db, running, UUIDS)
    box.add_job(yard.ctx.db, time_limit="1h", name="next")
    yard.clock.us = box.NOW + HOUR_US
    found = load(yard)
    first, second = devices(found)
    assert spans(first) == [(1, AttemptState.SUCCEEDED, False), (2, AttemptState.RUNNING, True)]
    assert spans(second) == [(2, AttemptState.RUNNING, True)]
    assert [first.expected, second.expected].count([3]) == 1
    jobs = {job.number: job for job in found.jobs}
    assert [job.name for job in jobs.values()][::2] == ["done", "next"]
    ends = moment(box.NOW + 2 * HOUR_US)
    assert jobs[2].expected_end_p90_at is not None
    assert abs(jobs[2].expected_end_p90_at - ends) <= timedelta(minutes=1)
    assert jobs[2].expected_start_at is None
    assert jobs[3].expected_start_at is not None
    assert jobs[3].expected_end_at is not None
    assert jobs[3].expected_start_at <= jobs[3].expected_end_at
    assert jobs[1].expected_end_at is None


def test_what_ended_before_the_window_is_left_out(yard: RecordedContext) -> None:
    box.finish(yard.ctx.db, box.start(yard.ctx.db, box.add_job(yard.ctx.db), UUIDS[:1]))
    assert [len(each.allocations) for each in devices(load(yard, hours=1))] == [1, 0]
    yard.clock.us = box.NOW + 2 * HOUR_US
    found = load(yard, hours=1)
    assert [len(each.allocations) for each in devices(found)] == [0, 0]
    assert found.jobs == []
    assert found.since == moment((box.NOW + HOUR_US) // timeline.MINUTE_US * timeline.MINUTE_US)


def test_of_too_many_allocations_the_newest_are_told(yard: RecordedContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MAX_ALLOCATIONS", 2)
    for number in range(4):
        attempt = box.start(yard.ctx.db, box.add_job(yard.ctx.db), UUIDS[:1])
        box.finish(yard.ctx.db, attempt)
        with yard.ctx.db.write() as tx:
            ended = update(Allocation).where(Allocation.attempt_id == attempt)
            tx.execute(ended.values(released_us=box.NOW + number * HOUR_US))
    yard.clock.us = box.NOW + 4 * HOUR_US
    found = load(yard)
    assert [span[0] for span in spans(devices(found)[0])] == [3, 4]
    assert found.since == moment(box.NOW + HOUR_US)


def test_of_a_job_that_may_not_be_read_only_user_and_times_are_told(yard: RecordedContext) -> None:
    box.start(yard.ctx.db, box.add_job(yard.ctx.db, name="secret"), UUIDS[:1])
    found = load(yard, caller("eve"))
    (job,) = found.jobs
    assert (job.name, job.user, job.readable) == (HIDDEN, "ada", False)
    assert spans(devices(found)[0]) == [(1, None, True)]
    assert "secret" not in found.model_dump_json()
    assert load(yard, caller("root", "admin")).jobs[0].name == "secret"


def test_a_reservation_that_is_over_stays_while_it_is_in_the_window(yard: RecordedContext) -> None:
    demo = NewReservation(name="demo", users=["ada"], gpus=1, ends_at=moment(box.NOW + HOUR_US))
    reservations.create(yard.ctx.db, caller("ada", "admin"), demo, box.NOW)
    yard.clock.us = box.NOW + 3 * HOUR_US
    assert [each.name for each in load(yard).reservations] == ["demo"]
    assert load(yard, hours=1).reservations == []


def test_a_long_history_is_not_read(yard: RecordedContext) -> None:
    job = box.add_job(yard.ctx.db)
    with yard.ctx.db.write() as tx:
        tx.execute(update(Job).values(state=JobState.CANCELLED))
        attempts = [
            {"id": f"att-{n}", "job_id": job, "number": n, "state": "succeeded", "created_us": box.NOW}
            for n in range(1, 2001)
        ]
        tx.execute(insert(Attempt), attempts)
        held = {"node": "box", "uuid": UUIDS[0], "index": 0, "live": False, "created_us": 1}
        tx.execute(
            insert(Allocation),
            [{**held, "attempt_id": each["id"], "released_us": n} for n, each in enumerate(attempts)],
        )
    with yard.ctx.db.read() as tx:
        if not yard.ctx.db.is_sqlite:
            tx.exec_driver_sql("ANALYZE allocations")
        query = timeline.allocations_since(box.NOW).compile(tx, compile_kwargs={"literal_binds": True})
        explain = "EXPLAIN QUERY PLAN" if yard.ctx.db.is_sqlite else "EXPLAIN"
        plan = "\n".join(str(tuple(row)) for row in tx.exec_driver_sql(f"{explain} {query}"))
    assert "ix_allocations_released_us" in plan, plan
    assert all(each.allocations == [] for each in devices(load(yard)))


def outages(told: list[Outage]) -> list[tuple[str, str, Any, Any]]:
    return [(each.kind, each.reason, each.starts_at, each.ends_at) for each in told]


def test_outages_of_the_window_are_told_with_their_node_and_device(yard: RecordedContext) -> None:
    hours = [moment(box.NOW + hour * HOUR_US) for hour in range(3)]
    why = f"{lifecycle.QUARANTINED}Xid 79: reset the GPU"
    with yard.ctx.db.unit_of_work(box.NOW) as unit:
        registration.set_draining(unit.tx, "box", True, "new fan")
        lifecycle.record_device_outage(unit.tx, "box", UUIDS[1], why)
    with yard.ctx.db.unit_of_work(box.NOW + HOUR_US) as unit:
        registration.set_draining(unit.tx, "box", False)
    yard.clock.us = box.NOW + 2 * HOUR_US
    (node,) = load(yard, hours=2).nodes
    assert outages(node.outages) == [("drain", "new fan", hours[0], hours[1])]
    assert [outages(each.outages) for each in node.devices] == [
        [],
        [("quarantine", "Xid 79: reset the GPU", hours[0], None)],
    ]
    yard.clock.us += timeline.MINUTE_US
    (later,) = load(yard, hours=1).nodes
    assert (later.outages, len(later.devices[1].outages)) == ([], 1)


def test_of_too_many_outages_what_holds_and_the_newest_are_told(
    yard: RecordedContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes_outages, "MAX_OUTAGES", 2)
    with yard.ctx.db.write() as tx:
        for hour, ended in ((0, None), (1, 2), (3, 4)):
            span = {"started_us": box.NOW + hour * HOUR_US, "ended_us": ended and box.NOW + ended * HOUR_US}
            tx.execute(insert(models.Outage).values(node="box", kind="drain", reason=str(hour), **span))
    yard.clock.us = box.NOW + 5 * HOUR_US
    (node,) = load(yard).nodes
    assert [each.reason for each in node.outages] == ["0", "3"]
