"""Bytes that the jobs of users and projects hold in the artifact store, and the quota for them."""

from collections import Counter

from sqlalchemy import Connection, func, select, true

from service.accounting import accounts
from service.db.models import Attempt, Checkpoint, Job, LogStream, Output
from service.db.records.accounting import AccountKind
from service.errors import ProblemError
from torchyard.api import FieldProblem
from torchyard.quantities import format_size


def held(tx: Connection, kind: AccountKind, name: str | None = None) -> dict[str, int]:
    """Return the bytes of stored checkpoints, files and logs by user id or project name, of all or of one.

    Files that jobs share count for each, as in a job's own figures.
    """
    owner = Job.user_id if kind == "user" else Job.project
    which = true() if name is None else owner == name
    queries = (
        select(owner, func.sum(Checkpoint.size))
        .join(Job, Job.id == Checkpoint.job_id)
        .where(Checkpoint.state == "stored"),
        select(owner, func.sum(Output.size)).join(Job, Job.id == Output.job_id).where(Output.state == "stored"),
        select(owner, func.sum(LogStream.size))
        .join(Attempt, Attempt.id == LogStream.attempt_id)
        .join(Job, Job.id == Attempt.job_id),
    )
    found = Counter[str]()
    for query in queries:
        found.update({row[0]: int(row[1]) for row in tx.execute(query.where(which).group_by(owner))})
    return found


def check(tx: Connection, owner: tuple[str, str], project: str) -> None:
    """Refuse a submission if the jobs of the user (an id and a name) or of the project hold all that they may."""
    user, user_name = owner
    words = {"user": f"user {user_name}", "project": f"project {project}"}
    for (kind, name), counts in accounts.of_submission(tx, user, project).items():
        if counts.max_storage is not None:
            _check_one(held(tx, kind, name).get(name, 0), counts.max_storage, words[kind])


def _check_one(size: int, most: int, who: str) -> None:
    if size < most:
        return
    message = (
        f"the jobs of {who} hold {format_size(size)} in the store, and may hold {format_size(most)}: discard what is "
        f"no longer needed (`yard discard`), or ask an administrator for `yard quota set {who} --max-storage SIZE`"
    )
    raise ProblemError(
        "forbidden", f"max_storage: {message}", errors=[FieldProblem(field="max_storage", message=message)]
    )
