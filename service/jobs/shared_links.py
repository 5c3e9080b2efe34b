"""Public links to jobs: whoever has one sees how the job goes without signing in.

Links are not stored, a job's `link_serial` alone: a link counts that was made with it, so a larger one revokes all.
Whether a link opens is decided anew each time: by the setting, its time, the visibility of the job's project, and
whether whoever made it is still let in.
"""

from sqlalchemy import ColumnElement, Select, func, select

from service import lifecycle
from service.db.engine import Database
from service.db.models import Job, Project, User
from service.errors import ProblemError
from service.identity import audit
from service.identity.callers import Caller
from service.identity.link_tokens import Link
from service.identity.roles import may_change
from service.infra.times import Clock, moment, words
from service.jobs import change, present, versions
from torchyard import api
from torchyard.api import Visibility
from torchyard.ids import JobId
from torchyard.translatable import TranslatableText


def share(
    db: Database, clock: Clock, caller: Caller, ref: str, expires_in: int, default: Visibility
) -> tuple[Link, int]:
    """Make a link to a job; return what its token says, and when it expires, in unix seconds.

    ``conflict`` if the job's project is private; `default` is the visibility of those without one.
    """
    with change.refusals(), db.write() as tx:
        found = versions.find(tx, ref, caller)
        may_change(caller, found)
        if not tx.scalar(select(Project.name).where(Project.name == found.project, _is_public(default))):
            raise ProblemError(
                "conflict",
                TranslatableText(
                    "private-jobs",
                    "Jobs of {project} are private: nobody but their owners may see them, so there are no links to "
                    "them. An administrator changes that with `yard projects set {project} --visibility project`.",
                    project=found.project,
                ),
            )
        job, now = lifecycle.lock_job(tx, found.id), clock()
        expires_s = now // 1_000_000 + expires_in
        ends = moment(expires_s * 1_000_000)
        message = f"made a public link to it, until {words(ends)}"
        note = lifecycle.Note(kind="shared", message=message, actor=caller.name, data={"until": words(ends)})
        last = max(expires_s * 1_000_000, job.link_expires_us or 0)
        lifecycle.change_job(tx, job.id, note, now, link_expires_us=last)
        audit.record(tx, caller, "job.share", job.id, now, expires_at=ends.isoformat())
    return Link(job.id, job.link_serial, caller.user_id), expires_s


def revoke(db: Database, clock: Clock, caller: Caller, ref: str) -> None:
    """Revoke all links to a job; without any it is fine, too."""
    with change.refusals(), db.write() as tx:
        found = versions.find(tx, ref, caller)
        may_change(caller, found)
        job, now = lifecycle.lock_job(tx, found.id), clock()
        note = lifecycle.Note(kind="unshared", message="revoked all public links to it", actor=caller.name)
        lifecycle.change_job(tx, job.id, note, now, link_serial=job.link_serial + 1, link_expires_us=None)
        audit.record(tx, caller, "job.unshare", job.id, now)


def status(db: Database, clock: Clock, job_id: JobId, default: Visibility) -> api.SharedLinks:
    """Return until when the links to a job open at the latest."""
    with db.read() as tx:
        expires_us = tx.scalar(_of_public(default).with_only_columns(Job.link_expires_us).where(Job.id == job_id))
    return api.SharedLinks(expires_at=moment(expires_us) if expires_us and expires_us > clock() else None)


def is_open(db: Database, link: Link, default: Visibility) -> bool:
    """Return whether a link opens that is signed and has not expired."""
    maker = Job.user_id if link.maker is None else link.maker
    which = (
        _of_public(default)
        .join(User, User.id == maker)
        .where(Job.id == link.job, Job.link_serial == link.serial, User.deactivated_us.is_(None))
    )
    with db.read() as tx:
        return tx.scalar(which) is not None


def run(db: Database, job_id: JobId) -> api.SharedRun:
    """Return what a link shows of its job; nothing else of a job may be added to it."""
    with db.read() as tx:
        job = present.jobs(tx, [job_id], None)[0]
    return api.SharedRun(
        name=job.name,
        owner=job.user,
        state=job.state,
        created_at=job.created_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        ran_s=job.ran_s,
        running_since=job.running_since,
        progress=job.progress,
        latest=job.latest,
    )


def _of_public(default: Visibility) -> Select[JobId]:
    return select(Job.id).join(Project, Project.name == Job.project).where(_is_public(default))


def _is_public(default: Visibility) -> ColumnElement[bool]:
    return func.coalesce(Project.visibility, default) != "private"
