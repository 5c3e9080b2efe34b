"""Actions of people on jobs that exist. States change in `service.lifecycle` alone."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from service import lifecycle
from service.db.engine import Database
from service.db.models import Checkpoint, Job, Tag
from service.db.records.jobs import JobVersion, SpecRecord
from service.db.records.spec import StoredSpec
from service.errors import ProblemError, field_problem
from service.identity import audit
from service.identity.callers import Caller
from service.identity.roles import may_change
from service.identity.visibility import may_read_env
from service.infra.times import Clock
from service.jobs import body, submit, versions
from service.jobs.submission import Submission
from service.storage import retention
from torchyard import api
from torchyard.ids import JobId
from torchyard.spec import PRIORITY_RANK, JobSpec, sweeps
from torchyard.states import JobState, StopReason
from torchyard.translatable import TranslatableText, of_error

Action = Callable[[Connection, JobId, str | None, int], object]


def cancel(tx: Connection, job_id: JobId, actor: str | None, now: int) -> object:
    """Ask the job to stop for good; one that waits is over at once."""
    return lifecycle.request_stop(tx, job_id, StopReason.CANCEL, actor, now)


def act(db: Database, clock: Clock, caller: Caller, ref: str, action: Action) -> JobVersion:
    """Do one of `cancel`, `lifecycle.hold`, `release_hold`, `request_checkpoint`; return the job's version."""
    with refusals(), db.write() as tx:
        found = versions.find(tx, ref, caller)
        may_change(caller, found)
        action(tx, found.id, caller.name, clock())
        audit.record_request(tx, caller, found.id, clock())
        return versions.find(tx, found.id, caller)


@contextmanager
def refusals() -> Iterator[None]:
    """Raise refused changes of state as problems."""
    try:
        yield
    except lifecycle.Unknown as error:
        raise ProblemError("not-found", of_error(error)) from error
    except lifecycle.Conflict as error:
        raise ProblemError("not-acceptable-state", of_error(error)) from error


def patch(
    db: Database, clock: Clock, caller: Caller, ref: str, if_match: str | None, changes: api.JobChanges
) -> JobVersion:
    """Change fields of a job that is as the caller has read it; return its version."""
    given = {name: getattr(changes, name) for name in changes.model_fields_set}
    body.check_values(given)
    with refusals(), db.write() as tx:
        found = versions.find(tx, ref, caller)
        may_change(caller, found)
        lifecycle.lock_job(tx, found.id)
        found = versions.find(tx, found.id, caller)
        versions.check_match(if_match, found.version)
        if given:
            audit.record_request(tx, caller, found.id, clock())
            _apply(tx, caller, found, given, clock())
        return versions.find(tx, found.id, caller)


def _apply(tx: Connection, caller: Caller, found: JobVersion, given: dict[str, Any], now: int) -> None:
    _check_changes(caller, found, given)
    before = _spec(tx, found.id).data
    spec = body.check({**before, **given})
    stored = spec.model_dump(mode="json")
    changed = {name: stored[name] for name in given if stored[name] != before.get(name)}
    if not changed:
        return
    note = lifecycle.Note(kind="changed", message=_sentence(changed), actor=caller.name, data=changed)
    lifecycle.change_job(
        tx,
        found.id,
        note,
        now,
        version=found.version,
        spec=stored,
        name=spec.name,
        priority=PRIORITY_RANK[spec.priority],
        tags=list(spec.tags),
    )
    if "tags" in changed:
        store_tags(tx, found.id, spec)


def _spec(tx: Connection, job_id: JobId) -> StoredSpec:
    return SpecRecord.one(tx.execute(select(Job.spec).where(Job.id == job_id))).spec


def store_tags(tx: Connection, job_id: JobId, spec: JobSpec) -> None:
    """Make the tags of the spec those that the job is found by."""
    number = tx.scalar(select(Job.number).where(Job.id == job_id))
    tx.execute(delete(Tag).where(Tag.number == number))
    if spec.tags:
        tx.execute(insert(Tag), [{"tag": tag, "job_id": job_id, "number": number} for tag in dict.fromkeys(spec.tags)])


def _sentence(changed: dict[str, Any]) -> str:
    return "; ".join(f"{name} is now {value}" for name, value in changed.items())


def _check_changes(caller: Caller, found: JobVersion, given: dict[str, Any]) -> None:
    for name in ("name", "priority", "tags"):
        if name in given and given[name] is None:
            raise field_problem(name, TranslatableText("not-null", "must not be null: leave it out to keep it"))
    if "priority" in given:
        submit.check_priority(caller, given["priority"])
        _require(not found.is_over, found, "priority", TranslatableText("not-over", "a job that is not over"))
    if "time_limit" in given:
        _require(found.state == JobState.QUEUED, found, "time_limit", _WAITING)


_WAITING = TranslatableText("still-waiting", "a job that waits: its node has it already")


def _require(allowed: bool, found: JobVersion, field: str, of_what: str) -> None:
    if not allowed:
        raise ProblemError(
            "not-acceptable-state",
            TranslatableText(
                "changes-of",
                "{field}: job {number} is {state}; {field} changes only of {of_what}.",
                field=field,
                number=found.number,
                state=found.state,
                of_what=of_what,
            ),
            errors=[
                api.FieldProblem(
                    field=field,
                    message=TranslatableText("changes-only-of", "changes only of {of_what}", of_what=of_what),
                )
            ],
        )


def prepare_rerun(db: Database, caller: Caller, ref: str, request: api.Rerun, keyed: dict[str, Any]) -> Submission:
    """Return a submission of the job's spec, changed as asked; `keyed` carries the idempotency key."""
    with db.read() as tx:
        found = versions.find(tx, ref, caller)
        before = _spec(tx, found.id)
        if not may_read_env(caller, found.user_id):
            _require_own_values(before, request.changes)
        spec = changed_spec(before.data, request.changes)
        if spec.sweep is not None:
            raise field_problem(
                "changes.sweep", TranslatableText("rerun-sweep", "a rerun is one job: submit a sweep with POST /jobs")
            )
        checkpoint = _checkpoint(tx, found.id, request.from_checkpoint, spec)
    return Submission(
        caller=caller,
        spec=spec,
        rerun_of=found.id,
        restore_checkpoint=checkpoint,
        advice=None if checkpoint is None else other_batch(body.check(dict(before.data)), spec),
        carry_from=found.id if request.carry else None,
        snapshot=before.code,
        **keyed,
    )


def _require_own_values(before: StoredSpec, changes: Mapping[str, Any]) -> None:
    """Refuse to hand the values of another user's variables to a job that could print them."""
    given = changes.get("env", {})
    if not isinstance(given, Mapping):  # null takes all variables away; what else it may be is not valid
        return
    kept = sorted((before.data.get("env") or {}).keys() - given.keys() - {sweeps.ENVIRONMENT})
    if kept:
        raise field_problem(
            "changes.env",
            TranslatableText(
                "owners-values",
                "the values of {names} are their owner's: give your own, or null to leave a variable out",
                names=tuple(kept),
            ),
        )


def other_batch(before: JobSpec, after: JobSpec) -> api.SubmissionNote | None:
    """Return a warning for a recipe that goes on with another effective batch than the one it was begun with."""
    first, second = before.effective_batch, after.effective_batch
    if first is None or second is None or first == second:
        return None
    message = (
        f"goes on with an effective batch of {second} samples instead of {first}, and as many fewer or more steps an "
        f"epoch: recipe.global_batch_size {first} (without batch_size) keeps it on any number of GPUs"
    )
    return api.SubmissionNote(code=api.NoteCode.OTHER_BATCH, message=message, params={"before": first, "after": second})


def changed_spec(spec: Mapping[str, Any], changes: dict[str, Any]) -> JobSpec:
    """Return the spec with changes merged in; complaints name fields below ``changes``."""
    try:
        return body.check(merge(spec, changes))
    except ProblemError as error:
        error.errors = [each.model_copy(update={"field": f"changes.{each.field}"}) for each in error.errors]
        raise


def merge(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _checkpoint(tx: Connection, job_id: JobId, asked: str | None, spec: JobSpec) -> str | None:
    if asked is None:
        return None
    if asked == "latest":
        found = _latest(tx, job_id)
    elif asked == "best":
        found = _best(tx, job_id, spec)
    else:
        query = select(Checkpoint.id).where(Checkpoint.id == asked, Checkpoint.job_id == job_id)
        found = tx.scalar(query.where(Checkpoint.state != "deleted"))
    if found is None:
        raise field_problem(
            "from_checkpoint",
            TranslatableText(
                "checkpoint-absent",
                "this job has no checkpoint {asked!r}: see GET /jobs/{job}/checkpoints",
                asked=asked,
                job=job_id,
            ),
        )
    return found


def _latest(tx: Connection, job_id: JobId) -> str | None:
    """Return the newest stored one, else the newest committed one."""
    found = retention.checkpoints_of(tx, job_id)
    newest = [each for each in found if each.state == "stored"] or found
    return newest[-1].id if newest else None


def _best(tx: Connection, job_id: JobId, spec: JobSpec) -> str | None:
    if spec.checkpoint.keep_best is None:
        raise field_problem(
            "from_checkpoint",
            TranslatableText("best-of-none", "best needs checkpoint.keep_best in the spec: name a checkpoint's id"),
        )
    return retention.best(retention.checkpoints_of(tx, job_id), spec.checkpoint.keep_best)
