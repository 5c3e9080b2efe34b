"""Rows of a submission: one job, or as many as its sweep says, all of them in a few statements."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, Table, func, insert, select

from service.db.models import JOB_NUMBERS, Dependency, Event, Group, Job, Tag
from service.errors import field_problem
from service.lifecycle.dependencies import Needs
from service.sweeps import expand
from torchyard.analysis import launchers
from torchyard.api import SubmissionNote
from torchyard.ids import JobId, new_id
from torchyard.spec import PRIORITY_RANK, JobSpec, Launcher
from torchyard.spec.sweeps import Sweep, Value
from torchyard.states import JobState

#: Different requests for resources in one sweep; each is compared with all nodes.
MAX_RESOURCE_REQUESTS = 100
# Built once. The table, not the class: it is three times as quick.
_INSERT = insert(cast("Table", Job.__table__))
_INSERT_EVENT = insert(cast("Table", Event.__table__))
_NEWEST = select(func.max(Job.number))


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedJob:
    """A job that is to be inserted."""

    spec: JobSpec
    stored: dict[str, Any]
    """The spec as it is stored."""
    parameters: dict[str, Value] | None = None


@dataclass(frozen=True, kw_only=True)
class SubmissionPlan:
    """All jobs of a submission."""

    name: str
    jobs: Sequence[PlannedJob]
    sweep: Sweep | None

    def resource_requests(self) -> Iterable[JobSpec]:
        """Return one spec for each different request for resources, and for what carries tensors between its ranks."""
        different = {(job.spec.resources, _backend(job.spec)): job.spec for job in reversed(self.jobs)}
        if len(different) > MAX_RESOURCE_REQUESTS:
            raise field_problem(
                "sweep.parameters", f"ask for at most {MAX_RESOURCE_REQUESTS} different resources in one sweep"
            )
        return reversed(different.values())


def _backend(spec: JobSpec) -> str | None:
    return None if spec.recipe is None else spec.recipe.backend


@dataclass(frozen=True, kw_only=True)
class SharedFields:
    """Columns in which all jobs of a submission are alike."""

    user_id: str
    actor: str
    now: int
    notes: Sequence[SubmissionNote]
    """What is told of the submission."""
    advice: str
    """Advice on what it asks for, which is among the notes; may be empty."""
    blocked: bool
    rerun_of: JobId | None
    restore_checkpoint: str | None
    carry_from: JobId | None
    received_us: int | None = None


def plan(spec: JobSpec) -> SubmissionPlan:
    """Return the jobs of a spec; an ``invalid-request`` problem if its sweep makes something that is no spec."""
    _check_links(spec)
    if spec.sweep is None:
        return SubmissionPlan(name=spec.name, jobs=[_planned(spec)], sweep=None)
    jobs = [_planned(trial.spec, trial.parameters) for trial in expand.trials(spec)]
    return SubmissionPlan(name=spec.name, jobs=jobs, sweep=spec.sweep)


def _check_links(spec: JobSpec) -> None:
    """Check `link` and `link_root`, which otherwise a node would refuse only once the job starts."""
    if not spec.link:
        return
    if spec.live is not None:
        raise field_problem("link", "live uses the folder as it is, with all that is in it: leave link out")
    if spec.link_root is None or not spec.link_root.startswith("/"):
        what = "an absolute folder on the node, below which the paths of link lie, such as /home/me/project"
        raise field_problem("link_root", f"link needs it: {what} (`yard submit` fills it in)")


def _planned(spec: JobSpec, parameters: dict[str, Value] | None = None) -> PlannedJob:
    if spec.launcher is Launcher.AUTO:  # as a value of the sweep
        spec = launchers.choose(spec).applied(spec)
    return PlannedJob(spec=spec, stored=spec.model_dump(mode="json"), parameters=parameters)


def store(tx: Connection, plan: SubmissionPlan, shared: SharedFields, needs: Needs) -> JobId:
    """Insert the jobs with their events, and their group if there is one; return the first job's id."""
    group = None if plan.sweep is None else new_id("grp")
    numbers = _next_numbers(tx, len(plan.jobs) + (group is not None))
    if group is not None and plan.sweep is not None:
        tx.execute(insert(Group), _group(group, numbers.pop(0), plan, plan.sweep, shared))
    ids = sorted(JobId(new_id("job")) for _ in plan.jobs)
    rows = [
        _job(planned, shared, id=job_id, number=number, group_id=group, trial=None if group is None else trial)
        for trial, (planned, job_id, number) in enumerate(zip(plan.jobs, ids, numbers, strict=True))
    ]
    tx.execute(_INSERT, rows)
    tx.execute(_INSERT_EVENT, [_event(row, shared) for row in rows])
    tags = list(dict.fromkeys(plan.jobs[0].spec.tags))
    _insert(tx, Tag, [{"tag": tag, "job_id": row["id"], "number": row["number"]} for row in rows for tag in tags])
    _insert(tx, Dependency, [{"job_id": job_id, "needs": needed} for job_id in ids for needed in needs.jobs])
    return ids[0]


def _insert(tx: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        tx.execute(insert(table.__table__), rows)


def _next_numbers(tx: Connection, count: int) -> list[int]:
    """Return so many numbers, rising; one after the other, unless submissions overlap."""
    if tx.dialect.name == "sqlite":
        newest = int(tx.scalar(_NEWEST) or 0)
        return list(range(newest + 1, newest + 1 + count))
    query = select(JOB_NUMBERS.next_value()).select_from(func.generate_series(1, count).alias("numbers"))
    return sorted(tx.scalars(query))


def _group(group: str, number: int, plan: SubmissionPlan, sweep: Sweep, shared: SharedFields) -> dict[str, Any]:
    return {
        "id": group,
        "number": number,
        "user_id": shared.user_id,
        "project": plan.jobs[0].spec.project,
        "name": plan.name,
        "sweep": sweep.model_dump(mode="json"),
        "size": len(plan.jobs),
        "created_us": shared.now,
    }


def _job(planned: PlannedJob, shared: SharedFields, **own: Any) -> dict[str, Any]:
    spec = planned.spec
    return {
        **own,
        "name": spec.name,
        "user_id": shared.user_id,
        "project": spec.project,
        "state": JobState.QUEUED,
        "version": 1,
        "held": False,
        "blocked": shared.blocked,
        "priority": PRIORITY_RANK[spec.priority],
        "spec": planned.stored,
        "code": planned.spec.code,
        "parameters": planned.parameters,
        "tags": list(spec.tags),
        "attempt": 0,
        "rerun_of": shared.rerun_of,
        "restore_checkpoint": shared.restore_checkpoint,
        "carry_from": shared.carry_from,
        "last_event": 1,
        "created_us": shared.now,
        "received_us": shared.received_us,
        "queued_us": shared.now,
        "changed_us": shared.now,
        "eligible_us": shared.now,
    }


def told(notes: Sequence[SubmissionNote]) -> str:
    """Return the message of the event of a submission."""
    return "; ".join(["submitted", *(each.message for each in notes)])


def _event(row: dict[str, Any], shared: SharedFields) -> dict[str, Any]:
    notes = [each.model_dump(mode="json") for each in shared.notes]
    data = {"rerun_of": shared.rerun_of, "advice": shared.advice, "notes": notes}
    return {
        "job_id": row["id"],
        "seq": 1,
        "at_us": shared.now,
        "kind": "submitted",
        "state": JobState.QUEUED,
        "attempt": None,
        "actor": shared.actor,
        "message": told(shared.notes),
        "data": {key: value for key, value in data.items() if value},
    }
