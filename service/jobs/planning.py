"""Rows of a submission: one job, or as many as its sweep says, all of them in a few statements."""

from collections.abc import Iterable, Iterator, Sequence
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
from torchyard.spec.resources import Resources
from torchyard.spec.sweeps import Sweep, Value
from torchyard.states import JobState
from torchyard.translatable import TranslatableText

#: Different requests for resources in one sweep; each is compared with all nodes.
MAX_RESOURCE_REQUESTS = 100
#: Jobs that are inserted by one statement: the rows of a whole sweep would need a hundred megabytes.
PORTION = 500
# Built once. The table, not the class: it is three times as quick.
_INSERT = insert(cast("Table", Job.__table__))
_INSERT_EVENT = insert(cast("Table", Event.__table__))
_NEWEST = select(func.max(Job.number))


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedJob:
    """A job that is to be inserted, told by what tells it from the first one of its submission.

    A sweep has ten thousand of them at most, so none holds a spec of its own.
    """

    changes: dict[str, Any]
    """Fields of the spec as it is stored that differ from `SubmissionPlan.stored`."""
    parameters: dict[str, Value] | None = None


@dataclass(frozen=True, kw_only=True)
class SubmissionPlan:
    """All jobs of a submission."""

    name: str
    first: JobSpec
    """The first job's spec; project, priority, code and tags are those of all (`bindings.SHARED`)."""
    stored: dict[str, Any]
    """The same as it is stored."""
    jobs: Sequence[PlannedJob]
    sweep: Sweep | None
    requests: Sequence[JobSpec]
    """The first spec of each different request for resources, and for what carries tensors between its ranks."""
    secrets: tuple[str, ...]
    """Names of the secrets that any job wants."""


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
    first: JobSpec | None = None
    stored: dict[str, Any] = {}
    written: dict[str, str] = {}
    jobs: list[PlannedJob] = []
    requests: dict[tuple[Resources, str | None], JobSpec] = {}
    secrets: dict[str, None] = {}
    for one, parameters in _specs(spec):
        data = one.model_dump(mode="json")
        if first is None:
            first, stored, written = one, data, {key: repr(value) for key, value in data.items()}
        # By what is written: 1, 1.0 and true are equal, but not the same.
        changes = {key: value for key, value in data.items() if repr(value) != written[key]}
        jobs.append(PlannedJob(changes=changes, parameters=parameters))
        requests.setdefault((one.resources, _backend(one)), one)
        if len(requests) > MAX_RESOURCE_REQUESTS:
            raise field_problem(
                "sweep.parameters",
                TranslatableText(
                    "sweep-resources",
                    "ask for at most {most} different resources in one sweep",
                    most=MAX_RESOURCE_REQUESTS,
                ),
            )
        secrets.update(dict.fromkeys(one.secrets))
    if first is None:
        raise ValueError("the sweep has no trials")
    return SubmissionPlan(
        name=spec.name, first=first, stored=stored, jobs=jobs, sweep=spec.sweep,
        requests=tuple(requests.values()), secrets=tuple(secrets),
    )  # fmt: skip


def _specs(spec: JobSpec) -> Iterator[tuple[JobSpec, dict[str, Value] | None]]:
    """Yield the specs of the jobs one by one, each with its parameters."""
    if spec.sweep is None:
        yield _launched(spec), None
        return
    for trial in expand.trials(spec):
        yield _launched(trial.spec), trial.parameters


def _launched(spec: JobSpec) -> JobSpec:
    # The launcher may be a value of the sweep.
    return launchers.choose(spec).applied(spec) if spec.launcher is Launcher.AUTO else spec


def _check_links(spec: JobSpec) -> None:
    """Check `link` and `link_root`, which otherwise a node would refuse only once the job starts."""
    if not spec.link:
        return
    if spec.live is not None:
        raise field_problem(
            "link",
            TranslatableText("link-live", "live uses the folder as it is, with all that is in it: leave link out"),
        )
    if spec.link_root is None or not spec.link_root.startswith("/"):
        raise field_problem(
            "link_root",
            TranslatableText(
                "link-root",
                "link needs it: an absolute folder on the node, below which the paths of link lie, such as "
                "/home/me/project (`yard submit` fills it in)",
            ),
        )


def store(tx: Connection, plan: SubmissionPlan, shared: SharedFields, needs: Needs) -> JobId:
    """Insert the jobs with their events, and their group if there is one; return the first job's id."""
    group = None if plan.sweep is None else new_id("grp")
    numbers = _next_numbers(tx, len(plan.jobs) + (group is not None))
    if group is not None and plan.sweep is not None:
        tx.execute(insert(Group), _group(group, numbers.pop(0), plan, plan.sweep, shared))
    ids = sorted(JobId(new_id("job")) for _ in plan.jobs)
    alike = {**_alike(plan, shared), "group_id": group}
    event = _event(shared)
    for begin in range(0, len(ids), PORTION):
        some = slice(begin, begin + PORTION)
        rows = [
            {
                **alike,
                "id": job_id,
                "number": number,
                "trial": None if group is None else trial,
                "name": planned.changes.get("name", plan.first.name),
                "spec": {**plan.stored, **planned.changes},
                "parameters": planned.parameters,
            }
            for trial, (planned, job_id, number) in enumerate(
                zip(plan.jobs[some], ids[some], numbers[some], strict=True), begin
            )
        ]
        _insert_jobs(tx, rows, event, dict.fromkeys(plan.first.tags), needs)
    return ids[0]


def _insert_jobs(
    tx: Connection, rows: list[dict[str, Any]], event: dict[str, Any], tags: Iterable[str], needs: Needs
) -> None:
    tx.execute(_INSERT, rows)
    tx.execute(_INSERT_EVENT, [{**event, "job_id": row["id"]} for row in rows])
    _insert(tx, Tag, [{"tag": tag, "job_id": row["id"], "number": row["number"]} for row in rows for tag in tags])
    _insert(tx, Dependency, [{"job_id": row["id"], "needs": needed} for row in rows for needed in needs.jobs])


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
        "project": plan.first.project,
        "name": plan.name,
        "sweep": sweep.model_dump(mode="json"),
        "size": len(plan.jobs),
        "created_us": shared.now,
    }


def _alike(plan: SubmissionPlan, shared: SharedFields) -> dict[str, Any]:
    """Return the columns in which all jobs of a submission are alike."""
    return {
        "user_id": shared.user_id,
        "project": plan.first.project,
        "state": JobState.QUEUED,
        "version": 1,
        "held": False,
        "blocked": shared.blocked,
        "priority": PRIORITY_RANK[plan.first.priority],
        "code": plan.first.code,
        "tags": list(plan.first.tags),
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


def _event(shared: SharedFields) -> dict[str, Any]:
    """Return the first event of each job, without the job."""
    notes = [each.model_dump(mode="json") for each in shared.notes]
    data = {"rerun_of": shared.rerun_of, "advice": shared.advice, "notes": notes}
    return {
        "seq": 1,
        "at_us": shared.now,
        "kind": "submitted",
        "state": JobState.QUEUED,
        "attempt": None,
        "actor": shared.actor,
        "message": told(shared.notes),
        "data": {key: value for key, value in data.items() if value},
    }
