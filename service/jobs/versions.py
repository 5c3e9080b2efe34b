"""Versions of jobs: a cheap query whose row changes whenever the job's presentation would."""

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Result, Select, bindparam, func, select

from service.db.models import Attempt, Group, Job, LogStream, Member, MetricStream, Output
from service.db.records.jobs import JobOwner, JobVersion
from service.errors import ProblemError, not_found
from service.identity.callers import Caller
from service.identity.visibility import found_for, may_read_env, readable
from service.infra.etags import etag
from torchyard.ids import JobId
from torchyard.translatable import TranslatableText

#: Bytes, not times: a rank whose points come late or whose clock is behind moves no newest time.
_METRICS = (
    select(func.sum(MetricStream.offset))
    .join(Attempt, Attempt.id == MetricStream.attempt_id)
    .where(Attempt.job_id == Job.id)
    .scalar_subquery()
)
_LOGS = (
    select(func.sum(LogStream.size))
    .join(Attempt, Attempt.id == LogStream.attempt_id)
    .where(Attempt.job_id == Job.id)
    .scalar_subquery()
)
_OUTPUTS = select(func.sum(Output.size)).where(Output.job_id == Job.id, Output.state == "stored").scalar_subquery()

#: Checkpoints need no part of their own: each of their changes is an event of the job.
COLUMNS = JobVersion.columns(Job, _METRICS.label("metrics"), _LOGS.label("logs"), _OUTPUTS.label("outputs"))

_BY_ID: Select[Any] = select(*COLUMNS).where(Job.id == bindparam("ref"))
_BY_NUMBER: Select[Any] = select(*COLUMNS).where(Job.number == bindparam("ref"))

_OWNER_BY_ID: Select[Any] = select(*JobOwner.columns(Job)).where(Job.id == bindparam("ref"))
_OWNER_BY_NUMBER: Select[Any] = select(*JobOwner.columns(Job)).where(Job.number == bindparam("ref"))

_Found = TypeVar("_Found", JobVersion, JobOwner)


def find(tx: Connection, ref: str, caller: Caller) -> JobVersion:
    """Return the version of a job by its id or its number; ``not-found`` if there is none that the caller may read."""
    return _readable(tx, ref, caller, JobVersion.first(_execute(tx, ref, _BY_NUMBER, _BY_ID)))


def owner(tx: Connection, ref: str, caller: Caller) -> JobOwner:
    """Return whose a job is; ``not-found`` if there is none that the caller may read."""
    return _readable(tx, ref, caller, JobOwner.first(_execute(tx, ref, _OWNER_BY_NUMBER, _OWNER_BY_ID)))


def _is_number(ref: str) -> bool:
    return ref.isascii() and ref.isdigit() and len(ref) <= 18


def _execute(tx: Connection, ref: str, by_number: Select[Any], by_id: Select[Any]) -> Result[Any]:
    return tx.execute(by_number, {"ref": int(ref)}) if _is_number(ref) else tx.execute(by_id, {"ref": ref})


def _readable(tx: Connection, ref: str, caller: Caller, found: _Found | None) -> _Found:
    shown = found_for(caller, found)
    if shown is None:
        raise _no_job(tx, ref, caller)
    return shown


def _no_job(tx: Connection, ref: str, caller: Caller) -> ProblemError:
    """Return the problem for an unknown job: people try numbers of sweeps as they try those of jobs."""
    of_sweep = Group.number == int(ref) if _is_number(ref) else Group.id == ref
    if (number := tx.scalar(select(Group.number).where(of_sweep, readable(caller, Group)))) is None:
        return not_found("job", ref)
    return ProblemError(
        "not-found",
        TranslatableText(
            "is-sweep",
            "{number} is a sweep, not a job: see `yard sweep show {number}` (GET /groups/{number}).",
            number=number,
        ),
    )


def tag(found: JobVersion, caller: Caller) -> str:
    """Return the ETag of the job as the caller sees it.

    It begins with the version, so that If-Match sees changes by people and of state, not every new metric.
    """
    whole = may_read_env(caller, found.user_id)
    return f'"{found.version}.{etag(found, whole).strip(chr(34))}"'


def tag_of_list(found: Sequence[JobVersion], following: str | None, caller: Caller) -> str:
    """Return the ETag of a page as the caller sees it; its link to the next one counts too."""
    return etag(following, [may_read_env(caller, each.user_id) for each in found], *found)


def check_match(header: str | None, version: int) -> None:
    """Compare If-Match with a job's version; problems ``precondition-required`` and ``precondition-failed``."""
    if header is None:
        raise ProblemError(
            "precondition-required",
            TranslatableText("send-if-match", "Send If-Match with the ETag of the job as you have read it."),
        )
    tags = [item.strip().removeprefix("W/").strip('"') for item in header.split(",")]
    if "*" not in tags and str(version) not in {item.partition(".")[0] for item in tags}:
        raise ProblemError(
            "precondition-failed",
            TranslatableText("job-changed", "The job has changed since you read it: read it again, then change it."),
        )


def tag_of_attempts(tx: Connection, job_id: JobId) -> str:
    """Return the ETag of a job's list of attempts."""
    row = tx.execute(select(func.count(), func.sum(Attempt.version)).where(Attempt.job_id == job_id)).one()
    settled = select(func.count()).select_from(Member).join(Attempt, Attempt.id == Member.attempt_id)
    count = tx.scalar(settled.where(Attempt.job_id == job_id, Member.settled))
    return etag("attempts", job_id, *map(int, (row[0], row[1] or 0, count or 0)))
