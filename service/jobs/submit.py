"""Submission of jobs: everything is checked and stored in one transaction, or nothing is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, select
from sqlalchemy.exc import IntegrityError

from service.accounting import accounts, storage
from service.accounting.policy_settings import current_policy
from service.db import idempotency, upsert
from service.db.engine import Database
from service.db.models import Project, Snapshot
from service.db.unit_of_work import unit_of
from service.errors import ProblemError, field_problem
from service.identity import audit, roles
from service.identity.callers import Caller
from service.identity.visibility import HIDDEN
from service.infra.times import Clock
from service.jobs import fit, groups, launching, memory_advice, planning, present, versions
from service.jobs.submission import Submission
from service.jobs.trial_note import may_start_over, trial_note
from service.lifecycle import dependencies
from service.secrets import of_jobs
from service.storage.store import BlobStore
from torchyard import api
from torchyard.api import FieldProblem, NoteCode, SubmissionNote, Submitters
from torchyard.ids import JobId
from torchyard.spec import HangPolicy, JobSpec, Priority
from torchyard.translatable import TranslatableText


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """The job, or the sweep that stands for many, and whether this request made it."""

    made: api.Job | api.Group
    tag: str
    """Its ETag."""
    new: bool = True


class Checked(NamedTuple):
    """A submission that was checked alone, and the spec of the first job that it would make."""

    answer: api.DryRun
    first: JobSpec


#: Trials that a dry run shows.
SHOWN = 5


def submit(db: Database, store: BlobStore, clock: Clock, submission: Submission) -> Submitted:
    """Store a job, or all jobs of a sweep, and wake the scheduler; problems name the field that is wrong."""
    submission = launching.resolve_launcher(db, store, submission)
    plan = planning.plan(submission.spec)  # before the transaction: what can be checked alone holds up nobody
    if submission.key is None:
        return _store(db, clock, submission, plan)
    try:
        return _store(db, clock, submission, plan)
    except IntegrityError:
        # The same key came at the same time, and the other request has just committed its job.
        return _store(db, clock, submission, plan)


def check(db: Database, store: BlobStore, submission: Submission) -> Checked:
    """Check all that `submit` does, without storing anything."""
    submission = launching.resolve_launcher(db, store, submission)
    plan = planning.plan(submission.spec)
    with db.read() as tx:
        _check_rights(submission)
        known = _check_project(tx, submission)
        notes = _check(tx, submission, plan)
        _check_quotas(tx, submission, plan, lock=False)
        dependencies.resolve(tx, submission.caller, submission.spec.after, len(plan.jobs), lock=False)
    if not known:
        notes.append(_new_project(submission))
    answer = api.DryRun(
        spec=submission.spec.model_dump(mode="json"),
        world_size=plan.first.world_size,
        note="; ".join(each.message for each in notes),
        notes=notes,
        trials=len(plan.jobs) if plan.sweep else None,
        first_trials=[
            api.PlannedTrial(name=job.changes.get("name", plan.first.name), parameters=job.parameters or {})
            for job in plan.jobs[:SHOWN]
            if plan.sweep
        ],
    )
    return Checked(answer, plan.first)


def _store(db: Database, clock: Clock, submission: Submission, plan: planning.SubmissionPlan) -> Submitted:
    now = clock()
    _check_rights(submission)
    notes = _checked(db, submission, plan, now)
    with db.write() as tx:
        known = _check_project(tx, submission)
        if submission.key and (
            made := idempotency.find(tx, submission.caller.user_id, submission.key, submission.fingerprint, now)
        ):
            return _submitted(tx, submission.caller, made, sweep=plan.sweep is not None, new=False)
        if not known:
            _create_project(tx, submission, now)
        if notes is None:
            notes = _check(tx, submission, plan)
        if not known:
            notes = [*notes, _new_project(submission)]
        _check_snapshot(tx, submission, lock=True)
        needs = dependencies.resolve(tx, submission.caller, submission.spec.after, len(plan.jobs), lock=True)
        _check_quotas(tx, submission, plan, lock=True)  # after the jobs: everybody locks in this order
        # The time anew: who reads what has changed must not have looked long past it when it becomes visible.
        shared = _shared(submission, clock(), notes, blocked=needs.blocked)
        first = planning.store(tx, plan, shared, needs)
        if submission.key:
            idempotency.remember(tx, submission.caller.user_id, submission.key, submission.fingerprint, first, now)
        audit.record_request(tx, submission.caller, first, now)
        unit_of(tx).tell_job(first)
        unit_of(tx).wake_scheduler()
        return _submitted(tx, submission.caller, first, sweep=plan.sweep is not None, new=True)


def _checked(
    db: Database, submission: Submission, plan: planning.SubmissionPlan, now: int
) -> list[SubmissionNote] | None:
    """Check what is true or not whoever submits meanwhile, before others wait for the database; return the notes.

    None: the submission's key has made its job, which is told whatever has changed since.
    """
    with db.read() as tx:
        _check_project(tx, submission)
        if submission.key and idempotency.is_used(tx, submission.caller.user_id, submission.key, now):
            return None
        return _check(tx, submission, plan)


def _submitted(tx: Connection, caller: Caller, job_id: JobId, *, sweep: bool, new: bool) -> Submitted:
    """Present the submission whose first job this is: the job, or its sweep."""
    if sweep:
        group = groups.of_job(tx, job_id)
        return Submitted(made=groups.present(tx, group, caller), tag=groups.tag(tx, group, caller), new=new)
    found = versions.find(tx, job_id, caller)
    return Submitted(made=present.jobs(tx, [job_id], caller)[0], tag=versions.tag(found, caller), new=new)


def check_priority(caller: Caller, priority: Priority) -> None:
    """Refuse urgent jobs, which overtake everybody, to all but administrators."""
    if priority is Priority.URGENT and not caller.admin:
        message = TranslatableText("urgent", "urgent needs the admin scope: take high")
        raise ProblemError(
            "forbidden", f"priority: {message}", errors=[FieldProblem(field="priority", message=message)]
        )


def _check_rights(submission: Submission) -> None:
    check_priority(submission.caller, submission.spec.priority)
    for name, value in submission.spec.env.items():
        if value == HIDDEN:  # copied from a job whose values the caller may not see
            raise field_problem(
                f"env.{name}",
                TranslatableText(
                    "hidden-value", "{hidden} stands for a value that is not yours to see: give your own", hidden=HIDDEN
                ),
            )


def _check_project(tx: Connection, submission: Submission) -> bool:
    """Check that the caller may submit to the project; False if there is none, and submitting may create it."""
    name = submission.spec.project
    submitters: Submitters | None = tx.scalar(_SUBMITTERS, {"name": name})
    roles.may_submit(submission.caller, name, submitters or "everyone")
    if submitters is not None:
        return True
    if submission.caller.admin:
        return False
    known = ", ".join(tx.scalars(select(Project.name).order_by(Project.name).limit(20)))
    raise field_problem(
        "project",
        TranslatableText(
            "project-unknown",
            "there is no project {project}: take one of {known}, or ask an administrator for "
            "`yard projects create {project}`",
            project=name,
            known=known,
        ),
    )


def _new_project(submission: Submission) -> SubmissionNote:
    """Return the note of a project that nobody has used before, which a mistyped name is too."""
    project = submission.spec.project
    return SubmissionNote(code=NoteCode.NEW_PROJECT, message=f"project {project} is new", params={"project": project})


def _create_project(tx: Connection, submission: Submission, now: int) -> None:
    values = {"name": submission.spec.project, "created_us": now}
    if tx.execute(upsert.insert(tx, Project).values(**values).on_conflict_do_nothing()).rowcount:
        audit.record(tx, submission.caller, "project.create", submission.spec.project, now, by="submission")


def _check(tx: Connection, submission: Submission, plan: planning.SubmissionPlan) -> list[SubmissionNote]:
    _check_snapshot(tx, submission, lock=False)
    _check_secrets(tx, submission, plan)
    infos = fit.capacity(tx)
    fitting = [fit.check(tx, spec, submission.caller.user_id, infos) for spec in plan.requests]
    others = (_launcher_note(submission), submission.advice, _trial(tx, submission.spec), hang_note(submission.spec))
    memory = memory_advice.advice(tx, submission.caller.user_id, submission.spec)
    return [*fitting[0], *(note for note in (*others, memory) if note is not None)]


def _launcher_note(submission: Submission) -> SubmissionNote | None:
    launcher, reason = submission.spec.launcher.value, submission.launcher_reason
    if reason is None:
        return None
    message = f"launcher {launcher}, because {reason.words}"
    params = {"launcher": launcher, "said": reason.words, "why": reason.code, "subject": reason.subject}
    return SubmissionNote(code=NoteCode.LAUNCHER, message=message, params=params)


def _trial(tx: Connection, spec: JobSpec) -> SubmissionNote | None:
    if not may_start_over(spec):
        return None
    allowed = tx.scalar(select(Project.restarts).where(Project.name == spec.project))
    return trial_note(spec, current_policy(tx), project_restarts=allowed is not False)


def hang_note(spec: JobSpec) -> SubmissionNote | None:
    """Return the note on what a rule for hanging asks of one's own script; None where the spec says nothing of it."""
    if spec.recipe is not None or spec.hang == HangPolicy():
        return None
    message = (
        "hang watches the steps that a script reports, as by `torchyard.report(step=step, loss=loss)`, not its log"
    )
    return SubmissionNote(code=NoteCode.HANG_STEPS, message=message)


def _check_secrets(tx: Connection, submission: Submission, plan: planning.SubmissionPlan) -> None:
    if plan.secrets:
        spec = submission.spec
        named = of_jobs.NamedSecrets(user_id=submission.caller.user_id, project=spec.project, names=plan.secrets)
        of_jobs.check(tx, named)


def _check_quotas(tx: Connection, submission: Submission, plan: planning.SubmissionPlan, *, lock: bool) -> None:
    owner = (submission.caller.user_id, submission.caller.name)
    accounts.check_queued(tx, owner, submission.spec.project, len(plan.jobs), lock=lock)
    storage.check(tx, owner, submission.spec.project)


def _check_snapshot(tx: Connection, submission: Submission, *, lock: bool) -> None:
    code = submission.spec.code
    if code is None:
        return
    query = select(Snapshot.user_id, Snapshot.committed).where(Snapshot.id == code)
    if lock:  # it stays until the job that needs it is stored
        query = query.with_for_update(read=True)
    row = tx.execute(query).one_or_none()
    if code == submission.snapshot:
        if row is None:
            raise field_problem(
                "code",
                TranslatableText(
                    "code-discarded", "the code of this job was discarded: submit it again from its folder"
                ),
            )
        return
    if row is None or (row.user_id != submission.caller.user_id and not submission.caller.admin):
        raise field_problem(
            "code",
            TranslatableText("code-absent", "you have no snapshot {code}: upload it with POST /snapshots", code=code),
        )
    if not row.committed:
        raise field_problem(
            "code",
            TranslatableText(
                "code-incomplete", "snapshot {code} is not complete: upload what is missing, then commit it", code=code
            ),
        )


_SUBMITTERS: Select[Any] = select(Project.submitters).where(Project.name == bindparam("name"))


def _shared(
    submission: Submission, now: int, notes: Sequence[SubmissionNote], *, blocked: bool
) -> planning.SharedFields:
    return planning.SharedFields(
        user_id=submission.caller.user_id,
        actor=submission.caller.name,
        now=now,
        notes=notes,
        advice="; ".join(each.message for each in notes if each.code == NoteCode.GPU_MEMORY),
        blocked=blocked,
        rerun_of=submission.rerun_of,
        restore_checkpoint=submission.restore_checkpoint,
        carry_from=submission.carry_from,
        received_us=submission.received_us,
    )
