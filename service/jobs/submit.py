"""Submission: everything is checked and stored in one transaction, or nothing is."""

from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, Select, Table, bindparam, func, insert, select
from sqlalchemy.exc import IntegrityError

from service import idempotency, lifecycle
from service.auth import Caller
from service.context import Context
from service.db import upsert
from service.db.models import JOB_NUMBERS, Job, Project, Snapshot, Tag
from service.jobs import fit, present, versions
from service.people import audit
from service.problems import ProblemError, field_problem
from torchyard import api
from torchyard.api import FieldProblem
from torchyard.ids import new_id
from torchyard.spec import PRIORITY_RANK, JobSpec, Priority
from torchyard.states import JobState


@dataclass(frozen=True, kw_only=True)
class Order:
    """A submission: who wants what, and where it comes from if it is a rerun."""

    caller: Caller
    spec: JobSpec
    key: str | None = None
    """The Idempotency-Key."""
    fingerprint: str = ""
    rerun_of: str | None = None
    restore_checkpoint: str | None = None
    snapshot: str | None = None
    """A snapshot that may be used although another user uploaded it: the rerun job's own."""


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """The job, and whether this request made it."""

    job: api.Job
    tag: str
    """The job's ETag."""
    new: bool = True


def submit(ctx: Context, order: Order) -> Submitted:
    """Stores a job and wakes the scheduler; problems name the field that is wrong."""
    if order.key is None:
        return _announced(ctx, _store(ctx, order))
    try:
        return _announced(ctx, _store(ctx, order))
    except IntegrityError:
        # The same key came at the same time, and the other request has just committed its job.
        return _announced(ctx, _store(ctx, order))


def check(ctx: Context, order: Order) -> api.DryRun:
    """What `submit` would check, without storing anything."""
    with ctx.db.read() as tx:
        _check_rights(order)
        known = _project_exists(tx, order)
        note = _check(tx, order)
    if not known:
        note += f"; project {order.spec.project} would be created"
    return api.DryRun(spec=order.spec.model_dump(mode="json"), world_size=order.spec.world_size, note=note)


def _announced(ctx: Context, submitted: Submitted) -> Submitted:
    if submitted.new:
        ctx.wake_scheduler()
        ctx.hub.notify("jobs", "queue", f"job:{submitted.job.id}")
    return submitted


def _store(ctx: Context, order: Order) -> Submitted:
    now = ctx.now_us()
    _check_rights(order)
    with ctx.db.write() as tx:
        if order.key and (made := idempotency.find(tx, order.caller.user_id, order.key, order.fingerprint, now)):
            return _submitted(tx, made, new=False)
        if not _project_exists(tx, order):
            _create_project(tx, order, now)
        note = _check(tx, order)
        job_id = _insert(tx, order, now, note)
        if order.key:
            idempotency.remember(tx, order.caller.user_id, order.key, order.fingerprint, job_id, now)
        return _submitted(tx, job_id, new=True)


def _submitted(tx: Connection, job_id: str, *, new: bool) -> Submitted:
    return Submitted(job=present.jobs(tx, [job_id])[0], tag=versions.tag(versions.find(tx, job_id)), new=new)


def check_priority(caller: Caller, priority: Priority) -> None:
    """Urgent jobs overtake everybody, so only administrators may make them."""
    if priority is Priority.URGENT and not caller.admin:
        message = "urgent needs the admin scope: take high"
        raise ProblemError(
            "forbidden", f"priority: {message}", errors=[FieldProblem(field="priority", message=message)]
        )


def _check_rights(order: Order) -> None:
    check_priority(order.caller, order.spec.priority)


def _project_exists(tx: Connection, order: Order) -> bool:
    """False if the caller may create the project by submitting to it."""
    name = order.spec.project
    if tx.scalar(_PROJECT, {"name": name}) is not None:
        return True
    if order.caller.admin:
        return False
    known = ", ".join(tx.scalars(select(Project.name).order_by(Project.name).limit(20)))
    raise field_problem("project", f"there is no project {name}: take one of {known}, or ask an administrator for it")


def _create_project(tx: Connection, order: Order, now: int) -> None:
    values = {"name": order.spec.project, "created_us": now}
    if tx.execute(upsert.insert(tx, Project).values(**values).on_conflict_do_nothing()).rowcount:
        audit(tx, order.caller, "project.create", order.spec.project, now, by="submission")


def _check(tx: Connection, order: Order) -> str:
    _check_snapshot(tx, order)
    return fit.check(tx, order.spec)


def _check_snapshot(tx: Connection, order: Order) -> None:
    code = order.spec.code
    if code is None or code == order.snapshot:
        return
    row = tx.execute(select(Snapshot.user_id, Snapshot.committed).where(Snapshot.id == code)).one_or_none()
    if row is None or (row.user_id != order.caller.user_id and not order.caller.admin):
        raise field_problem("code", f"you have no snapshot {code}: upload it with POST /snapshots")
    if not row.committed:
        raise field_problem("code", f"snapshot {code} is not complete: upload what is missing, then commit it")


def _next_number(tx: Connection) -> int:
    if tx.dialect.name == "sqlite":
        return int(tx.scalar(_NEWEST) or 0) + 1
    return int(tx.scalar(JOB_NUMBERS.next_value().select()) or 0)


_NEWEST = select(func.max(Job.number))
#: Statements that every submission runs are built once. The table, not the class: it is three times as quick.
_INSERT = insert(cast("Table", Job.__table__))
_PROJECT: Select[Any] = select(Project.name).where(Project.name == bindparam("name"))


def _values(order: Order, number: int, now: int) -> dict[str, Any]:
    spec = order.spec
    return {
        "id": new_id("job"),
        "number": number,
        "name": spec.name,
        "user_id": order.caller.user_id,
        "project": spec.project,
        "state": JobState.QUEUED,
        "version": 1,
        "held": False,
        "priority": PRIORITY_RANK[spec.priority],
        "spec": spec.model_dump(mode="json"),
        "tags": list(spec.tags),
        "attempt": 0,
        "rerun_of": order.rerun_of,
        "restore_checkpoint": order.restore_checkpoint,
        "created_us": now,
        "queued_us": now,
        "changed_us": now,
        "eligible_us": now,
    }


def _insert(tx: Connection, order: Order, now: int, message: str) -> str:
    values = _values(order, _next_number(tx), now)
    tx.execute(_INSERT, values)
    if order.spec.tags:
        tx.execute(insert(Tag), [{"tag": tag, "job_id": values["id"]} for tag in dict.fromkeys(order.spec.tags)])
    data = {"rerun_of": order.rerun_of} if order.rerun_of else {}
    lifecycle.insert_event(tx, values["id"], "submitted", message, actor=order.caller.name, data=data, now=now)
    return str(values["id"])
