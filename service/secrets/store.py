"""Secrets of users and projects: set, list and remove them, and exchange the key that they are encrypted with."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, true, update

from service.db.engine import Database
from service.db.models import Installation, Job, ProjectMember, Secret, SecretUse, User
from service.db.records.record import Record
from service.db.unit_of_work import unit_of
from service.errors import ProblemError, field_problem, not_found
from service.identity import audit, project_names
from service.identity.callers import Caller
from service.infra.times import moment
from service.secrets.key_file import KeyFile, KeyFileError
from torchyard import api
from torchyard.ids import new_id
from torchyard.spec.secrets import check_secret_name
from torchyard.translatable import TranslatableText, of_error

logger = logging.getLogger(__name__)

#: Secrets of one user or project.
MAX_SECRETS = 200


#: The newest jobs of a secret that are told.
MAX_USES = 20


@dataclass(frozen=True, slots=True)
class _ShownSecret(Record):
    """A secret without its value, with the name of who has set it."""

    id: str
    name: str
    project: str | None
    setter: str
    created_us: int
    changed_us: int


@dataclass(frozen=True, slots=True)
class _Use(Record):
    """A job that was given a secret."""

    secret_id: str
    used_us: int
    number: int


def list_secrets(db: Database, caller: Caller) -> list[api.Secret]:
    """Return the caller's own secrets and those of their projects; administrators see those of all projects."""
    with db.read() as tx:
        return _shown(tx, or_(Secret.user_id == caller.user_id, _of_projects(caller)))


def _of_projects(caller: Caller) -> ColumnElement[bool]:
    theirs = select(ProjectMember.project).where(ProjectMember.user_id == caller.user_id)
    return and_(Secret.project.is_not(None), true() if caller.admin else Secret.project.in_(theirs))


def set_secret(
    db: Database, keys: KeyFile, caller: Caller, name: str, value: api.SecretValue, now: int, project: str | None = None
) -> api.Secret:
    """Set the value of the caller's own secret, or of a project's; `KeyFileError` if it cannot be encrypted."""
    _check_name(name)
    with db.write() as tx:
        own = _owned(tx, caller, name, project)
        _lock(tx)
        _check_key(tx, keys)
        encrypted = keys.encrypt(value.value.get_secret_value())
        changed = {"encrypted": encrypted, "set_by": caller.user_id, "changed_us": now}
        if not tx.execute(update(Secret).where(own).values(**changed)).rowcount:
            _check_number(tx, caller, project)
            owner = {"user_id": None, "project": project} if project else {"user_id": caller.user_id}
            tx.execute(insert(Secret).values(id=new_id("secret"), name=name, created_us=now, **owner, **changed))
        audit.record(tx, caller, "secret.set", name, now, **_scope(project))
        unit_of(tx).wake_scheduler()  # jobs may have waited for it
        (made,) = _shown(tx, own)
    return made


def remove_secret(db: Database, caller: Caller, name: str, now: int, project: str | None = None) -> None:
    """Remove the caller's own secret, or a project's; ``not-found`` if there is none."""
    with db.write() as tx:
        own = _owned(tx, caller, name, project)
        tx.execute(delete(SecretUse).where(SecretUse.secret_id.in_(select(Secret.id).where(own))))
        if not tx.execute(delete(Secret).where(own)).rowcount:
            raise not_found(f"secret of project {project} named" if project else "secret of yours named", name)
        audit.record(tx, caller, "secret.remove", name, now, **_scope(project))


def report_unreadable(db: Database, keys: KeyFile) -> None:
    """Say in the log if there are secrets that cannot be decrypted: jobs that name some would fail."""
    try:
        _check(db, keys)
    except KeyFileError as error:
        logger.error("%s", error.detail)


def _check(db: Database, keys: KeyFile) -> None:
    with db.read() as tx:
        _check_newest(tx, keys)


def rotate(db: Database, keys: KeyFile) -> int:
    """Encrypt all secrets anew with a new key, which takes the place of the old one; return how many.

    Interrupted, it leaves both keys in the file, and is run again. A service may run meanwhile.
    """
    _check(db, keys)
    keys.create()
    keys.add_newest()
    with db.write() as tx:
        _lock(tx)
        rows = tx.execute(select(Secret.id, Secret.encrypted)).all()
        for row in rows:
            encrypted = keys.encrypt(keys.decrypt(row.encrypted))
            tx.execute(update(Secret).where(Secret.id == row.id).values(encrypted=encrypted))
    keys.keep_newest()
    return len(rows)


def _check_name(name: str) -> None:
    try:
        check_secret_name(name)
    except ValueError as error:
        raise field_problem("name", of_error(error)) from error


def _owned(tx: Connection, caller: Caller, name: str, project: str | None) -> ColumnElement[bool]:
    """Return the condition of the secret; ``forbidden`` if the caller may not change those of the project."""
    if project is None:
        return and_(Secret.user_id == caller.user_id, Secret.name == name)
    if not caller.admin:
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "secrets-of-project",
                "project: only an administrator sets and removes secrets of {project}.",
                project=project[:80],
            ),
        )
    project_names.check(tx, project)
    return and_(Secret.project == project, Secret.name == name)


def _lock(tx: Connection) -> None:
    """Wait for others who encrypt: none may still use a key that a rotation is about to forget."""
    tx.execute(select(Installation.value).where(Installation.key == "id").with_for_update())


def _check_key(tx: Connection, keys: KeyFile) -> None:
    """Make the first key where there is nothing yet that another one has encrypted."""
    if not _check_newest(tx, keys):
        keys.create()


def _check_newest(tx: Connection, keys: KeyFile) -> bool:
    """Return whether there are secrets, whose newest can be decrypted then."""
    newest = tx.scalar(select(Secret.encrypted).order_by(Secret.changed_us.desc()).limit(1))
    if newest is not None:
        keys.decrypt(newest)
    return newest is not None


def _check_number(tx: Connection, caller: Caller, project: str | None) -> None:
    owner = Secret.project == project if project else Secret.user_id == caller.user_id
    if (tx.scalar(select(func.count()).select_from(Secret).where(owner)) or 0) >= MAX_SECRETS:
        raise ProblemError(
            "conflict",
            TranslatableText("many-secrets", "There are {most} secrets already: remove some first.", most=MAX_SECRETS),
        )


def _scope(project: str | None) -> dict[str, str]:
    return {"project": project} if project else {}


def _shown(tx: Connection, which: ColumnElement[bool]) -> list[api.Secret]:
    query = select(*_ShownSecret.columns(Secret, User.name.label("setter"))).join(User, User.id == Secret.set_by)
    found: Sequence[_ShownSecret] = _ShownSecret.all(tx.execute(query.where(which).order_by(Secret.name)))
    uses = _uses(tx, [each.id for each in found])
    return [
        api.Secret(
            name=each.name,
            project=each.project,
            set_by=each.setter,
            created_at=moment(each.created_us),
            changed_at=moment(each.changed_us),
            used_at=moment(uses[each.id][0].used_us) if each.id in uses else None,
            used_by=[use.number for use in uses.get(each.id, ())],
        )
        for each in sorted(found, key=lambda each: (each.project or "", each.name))
    ]


def _uses(tx: Connection, secrets: Sequence[str]) -> dict[str, list[_Use]]:
    """Return the newest uses of secrets that have any, the newest first."""
    place = func.row_number().over(partition_by=SecretUse.secret_id, order_by=SecretUse.used_us.desc())
    query = select(SecretUse.secret_id, SecretUse.used_us, Job.number, place.label("place"))
    some = query.join(Job, Job.id == SecretUse.job_id).where(SecretUse.secret_id.in_(secrets)).subquery()
    newest = select(some).where(some.c.place <= MAX_USES).order_by(some.c.used_us.desc(), some.c.number.desc())
    found: dict[str, list[_Use]] = {}
    for use in _Use.each(tx.execute(newest)):
        found.setdefault(use.secret_id, []).append(use)
    return found
