"""What needs attention, on both databases."""

from typing import Any

import pytest
from sqlalchemy import event, insert, select, update

from service.db.engine import Database
from service.db.models import Attempt, Device, Job, MetricSeries, Node, Sample
from service.identity.callers import Caller
from service.identity.visibility import HIDDEN
from service.queue import attention
from tests.integration.service.queue.test_timeline import UUIDS, caller
from tests.support import box
from tests.support.recorded_context import RecordedContext
from torchyard.api import Attention, JobError
from torchyard.ids import AttemptId

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3\nValueError: no such data set\n'


def load(yard: RecordedContext, reader: Caller | None = None) -> list[Attention]:
    return attention.load(yard.ctx.db, reader or caller("ada"), yard.clock.us, box.GIB)


def told(yard: RecordedContext, reader: Caller | None = None) -> list[tuple[str, str]]:
    return [(item.kind, item.message) for item in load(yard, reader)]


def test_a_box_on_which_all_is_well(yard: RecordedContext) -> None:
    box.start(yard.ctx.db, box.add_job(yard.ctx.db), UUIDS[:1])
    assert load(yard) == []


def test_troubles_of_nodes_and_devices_are_told_to_everybody(yard: RecordedContext) -> None:
    with yard.ctx.db.write() as tx:
        stray = {"code": "on-free-gpu", "message": "process 42 computes", "params": {"pid": 42}}
        offenders = {"offenders": ["process 42 computes", "process 43 does"], "offender_findings": [stray]}
        tx.execute(update(Node).values(unreachable=True, disk_free=box.GIB // 2, **offenders))
        lost = {"code": "broken", "message": "it fell off the bus", "params": {"xid": 79}}
        broken = {"unusable": "it fell off the bus", "findings": [lost]}
        tx.execute(update(Device).where(Device.uuid == UUIDS[1]).values(**broken))
    assert told(yard, caller("eve")) == [
        ("node-silent", "is silent"),
        ("disk-low", "has 512.0 MiB of disk free: no job starts there below 1.0 GiB"),
        ("device-unusable", "GPU 1 is out of use: it fell off the bus"),
        ("offender", "process 42 computes"),
        ("offender", "process 43 does"),
    ]
    assert [item.params for item in load(yard, caller("eve"))] == [
        {},
        {"free": "512.0 MiB", "least": "1.0 GiB"},
        {"unit": "gpu", "index": 1, "said": "it fell off the bus", "finding": lost},
        {"finding": stray},
        {},
    ]


def test_a_failure_says_the_exceptions_own_line_until_the_job_is_run_again(yard: RecordedContext) -> None:
    job = box.add_job(yard.ctx.db, max_retries=0)
    box.finish(yard.ctx.db, box.start(yard.ctx.db, job, UUIDS[:1]), exit_code=1, failed_rank=0, traceback=TRACEBACK)
    assert told(yard) == [("failed", "ValueError: no such data set")]
    assert told(yard, caller("eve")) == []
    again = box.add_job(yard.ctx.db)
    with yard.ctx.db.write() as tx:
        tx.execute(update(Job).where(Job.id == again).values(rerun_of=job))
    assert told(yard) == []


def test_a_failure_is_told_for_a_day(yard: RecordedContext) -> None:
    box.finish(yard.ctx.db, box.start(yard.ctx.db, box.add_job(yard.ctx.db, max_retries=0), UUIDS[:1]), exit_code=1)
    (found,) = load(yard)
    assert found.kind == "failed"
    error = JobError.model_validate(found.params["error"])
    assert (error.message, error.exit_code, error.traceback) == (found.message, 1, None)
    yard.clock.us += attention.FAILED_US + 10
    assert told(yard) == []


def test_a_run_that_hangs_is_told_to_all_but_named_to_whom_may_read_it(yard: RecordedContext) -> None:
    box.start(yard.ctx.db, box.add_job(yard.ctx.db, name="secret"), UUIDS[:1])
    with yard.ctx.db.write() as tx:
        tx.execute(update(Attempt).values(hung_us=yard.clock.us))
    own, others = load(yard), load(yard, caller("eve"))
    assert [(item.kind, item.name, item.readable) for item in own] == [("hung", "secret", True)]
    assert [(item.name, item.user, item.readable) for item in others] == [(HIDDEN, "ada", False)]


@pytest.mark.parametrize(
    ("percent", "minutes", "kinds"), [(0.0, 10, ["idle"]), (0.0, 7, []), (60.0, 10, [])], ids=["idle", "young", "busy"]
)
def test_a_run_that_uses_no_gpu(yard: RecordedContext, percent: float, minutes: int, kinds: list[str]) -> None:
    attempt = box.start(yard.ctx.db, box.add_job(yard.ctx.db, gpus=2), UUIDS)
    yard.clock.us += 12 * attention.MINUTE_US
    values = {"gpu.0.utilization": 0.0, "gpu.1.utilization": percent}
    with yard.ctx.db.write() as tx:
        moments = [yard.clock.us - minute * attention.MINUTE_US - 5 for minute in range(minutes)]
        tx.execute(
            insert(Sample), [{"node": "box", "attempt_id": attempt, "time_us": at, "values": values} for at in moments]
        )
    assert [item.kind for item in load(yard)] == kinds


def test_more_runs_are_looked_at_than_one_statement_takes(yard: RecordedContext) -> None:
    held = [attention._HeldGpu(AttemptId(f"att-{number}"), "box", 0) for number in range(attention.PROBED + 1)]
    sampled = {"node": "box", "attempt_id": held[-1].attempt_id, "values": {"gpu.0.utilization": 70.0}}
    with yard.ctx.db.write() as tx:
        tx.execute(insert(Sample).values(time_us=yard.clock.us, **sampled))
    with yard.ctx.db.read() as tx:
        found = attention._busiest(tx, held, yard.clock.us)
    assert found == {each.attempt_id: (False, 0.0) for each in held} | {held[-1].attempt_id: (False, 70.0)}


def test_a_metric_that_is_not_finite_is_told_to_its_owner(yard: RecordedContext) -> None:
    attempt = box.start(yard.ctx.db, box.add_job(yard.ctx.db), UUIDS[:1])
    series: dict[str, Any] = {"attempt_id": attempt, "attempt": 1, "stream": "rank-0", "rank": 0, "name": "train/loss"}
    with yard.ctx.db.write() as tx:
        job = tx.scalar(select(Attempt.job_id))
        tx.execute(insert(MetricSeries).values(job_id=job, last_step=3, last_special=1, **series))
    (found,) = load(yard)
    assert (found.kind, found.message, found.params) == (
        "nan",
        "train/loss is nan",
        {"metric": "train/loss", "value": "nan"},
    )
    assert told(yard, caller("root", "admin")) == []


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (None, "failed"),
        (JobError(cause="exit", message="rank 0 exited with code 1"), "rank 0 exited with code 1"),
        (JobError(cause="exit", message="rank 0 exited", traceback=TRACEBACK), "ValueError: no such data set"),
        (JobError(cause="memory-limit", message="used too much", traceback="alloc\n"), "used too much"),
    ],
)
def test_the_headline_of_a_failure(error: JobError | None, line: str) -> None:
    assert attention.headline(error) == line


def test_what_was_run_again_is_found_once_for_all_failures(db: Database) -> None:
    """Asked for each of a hundred, PostgreSQL reads all later jobs of the user a hundred times."""
    asked: list[tuple[str, Any]] = []

    def listen(*call: Any) -> None:
        asked.append((call[2], call[3]))

    event.listen(db.engine, "before_cursor_execute", listen)
    with db.read() as tx:
        attention._failed(tx, caller("ada"), box.NOW)
    event.remove(db.engine, "before_cursor_execute", listen)
    (statement, values), how = asked[-1], "EXPLAIN QUERY PLAN" if db.is_sqlite else "EXPLAIN"
    with db.read() as tx:
        plan = str(tx.exec_driver_sql(f"{how} {statement}", values).all())
    assert ("CORRELATED" if db.is_sqlite else "Anti Join") not in plan
    assert "ix_jobs_user_id" in plan
