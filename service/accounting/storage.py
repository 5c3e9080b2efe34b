"""Bytes that the jobs of users and projects hold in the artifact store, and the quota for them."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select, true

from service.accounting import accounts
from service.db.models import Job, Snapshot, StoredBytes
from service.db.records.accounting import AccountKind
from service.errors import ProblemError
from torchyard.api import FieldProblem
from torchyard.quantities import format_size
from torchyard.translatable import TranslatableText


@dataclass(slots=True)
class HeldStorage:
    """Bytes in the store by user id or project name."""

    files: Counter[str]
    """Of checkpoints, files and logs."""
    code: Counter[str]
    """Of snapshots of code."""

    def total(self, owner: str) -> int:
        """Return the bytes that a quota counts."""
        return self.files[owner] + self.code[owner]


def held(tx: Connection, kind: AccountKind, name: str | None = None) -> HeldStorage:
    """Return the bytes of stored checkpoints, files, logs and code, of all or of one.

    - Sums of files are kept (`service.db.stored_bytes`); snapshots are added up from an index of the owner's jobs.
    - Files that jobs share count for each, as in a job's own figures.
    - A snapshot of code counts once for each who has jobs on it, discarded ones too: it stays as long as they do.
    """
    owner = Job.user_id if kind == "user" else Job.project
    which = true() if name is None else owner == name
    return HeldStorage(_files(tx, kind, name), _code(tx, owner, which))


def _files(tx: Connection, kind: AccountKind, name: str | None) -> Counter[str]:
    owner = StoredBytes.user_id if kind == "user" else StoredBytes.project
    query = select(owner, func.sum(StoredBytes.size)).where(true() if name is None else owner == name).group_by(owner)
    return Counter({row[0]: int(row[1]) for row in tx.execute(query)})


def _code(tx: Connection, owner: Any, which: ColumnElement[bool]) -> Counter[str]:
    used = select(owner.label("owner"), Job.code).where(which).distinct().subquery()
    query = select(used.c.owner, func.sum(Snapshot.size)).join(Snapshot, Snapshot.id == used.c.code)
    return Counter({row[0]: int(row[1]) for row in tx.execute(query.group_by(used.c.owner))})


def check(tx: Connection, owner: tuple[str, str], project: str) -> None:
    """Refuse a submission if the jobs of the user (an id and a name) or of the project hold all that they may."""
    user, user_name = owner
    names = {"user": user_name, "project": project}
    for (kind, name), counts in accounts.of_submission(tx, user, project).items():
        if counts.max_storage is not None:
            _check_one(held(tx, kind, name).total(name), counts.max_storage, (kind, names[kind]))


def _check_one(size: int, most: int, key: accounts.AccountKey) -> None:
    if size < most:
        return
    kind, name = key
    message = TranslatableText(
        "quota-storage",
        "the jobs of {who} hold {held} in the store, and may hold {most}: discard what is no longer needed "
        "(`yard discard`, `yard discard --code`), or ask an administrator for "
        "`yard quota set {kind} {name} --max-storage SIZE`",
        who=accounts.words(key),
        kind=kind,
        name=name,
        held=format_size(size),
        most=format_size(most),
    )
    raise ProblemError(
        "forbidden", f"max_storage: {message}", errors=[FieldProblem(field="max_storage", message=message)]
    )
