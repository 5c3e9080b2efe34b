"""Secrets that jobs name in their specs: the owner's own first, then those of the job's project for its members."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, Connection, Select, and_, bindparam, or_, select

from service.db import upsert
from service.db.models import ProjectMember, Secret, SecretUse, User
from service.db.records.record import Record
from service.errors import ProblemError, field_problem
from service.secrets.key_file import KeyFile
from torchyard.ids import JobId
from torchyard.translatable import TranslatableText, joined

#: Members who may submit to the project: viewers have no use of what is its jobs'.
_WORKS = ProjectMember.role != "viewer"
_USERS: BindParameter[Any] = bindparam("users", expanding=True)
_THEIRS = select(Secret.user_id, Secret.project, Secret.name).where(
    or_(Secret.user_id.in_(_USERS), Secret.project.in_(bindparam("projects", expanding=True)))
)
_MEMBERS = select(ProjectMember.project, ProjectMember.user_id).where(ProjectMember.user_id.in_(_USERS), _WORKS)
_ADMINISTRATORS: Select[Any] = select(User.id).where(User.id.in_(_USERS), User.role == "administrator")


@dataclass(frozen=True, slots=True)
class _StoredSecret(Record):
    """A secret with its encrypted value."""

    id: str
    name: str
    encrypted: str


@dataclass(frozen=True, kw_only=True)
class NamedSecrets:
    """Secrets that a job names, and by whom and where they are looked up."""

    user_id: str
    project: str
    names: tuple[str, ...]


def check(tx: Connection, named: NamedSecrets) -> None:
    """Raise ``invalid-request`` for names that are unknown; it tells those that there are, and the mend."""
    found = _usable(tx, named.user_id, named.project)
    unknown = [name for name in named.names if name not in found]
    if not unknown:
        return
    known = [TranslatableText("secrets-known", "there are {names}", names=tuple(sorted(found)[:20]))] if found else []
    raise field_problem("secrets", joined([absent(unknown, named.project), *known]))


def missing(tx: Connection, jobs: Mapping[JobId, NamedSecrets]) -> dict[JobId, tuple[str, ...]]:
    """Return the names that jobs look for in vain, by job; those that have all they name are left out."""
    naming = [named for named in jobs.values() if named.names]
    if not naming:
        return {}
    users = {"users": sorted({named.user_id for named in naming})}
    projects = {"projects": sorted({named.project for named in naming})}
    known = {tuple(row) for row in tx.execute(_THEIRS, users | projects)}
    sharing = {tuple(row) for row in tx.execute(_MEMBERS, users)}
    administrators = set(tx.scalars(_ADMINISTRATORS, users))

    def has(named: NamedSecrets, name: str) -> bool:
        shares = (named.project, named.user_id) in sharing or named.user_id in administrators
        return (named.user_id, None, name) in known or (shares and (None, named.project, name) in known)

    lacks = {job: tuple(name for name in named.names if not has(named, name)) for job, named in jobs.items()}
    return {job: names for job, names in lacks.items() if names}


def give(tx: Connection, keys: KeyFile, named: NamedSecrets, job: JobId, now: int) -> dict[str, str]:
    """Return the values by name, and record that the job was given them.

    ``conflict`` if one was removed, `KeyFileError` if they cannot be decrypted.
    """
    found = _usable(tx, named.user_id, named.project)
    if unknown := [name for name in named.names if name not in found]:
        raise ProblemError("conflict", absent(unknown, named.project))
    given = {name: keys.decrypt(found[name].encrypted) for name in named.names}
    for name in given:
        use = upsert.insert(tx, SecretUse).values(secret_id=found[name].id, job_id=job, used_us=now)
        tx.execute(use.on_conflict_do_update(index_elements=["secret_id", "job_id"], set_={"used_us": now}))
    return given


def absent(names: Sequence[str], project: str) -> TranslatableText:
    """Return the sentence about secrets that a job names and that do not exist, with the mend."""
    if len(names) == 1:
        return TranslatableText(
            "secret-absent",
            "there is no secret {name} of the job's owner or of project {project}: `yard secrets set {name}` adds it",
            name=names[0],
            project=project,
        )
    return TranslatableText(
        "secrets-absent",
        "there are no secrets {names} of the job's owner or of project {project}: {commands} add them",
        names=tuple(names),
        project=project,
        commands=_setting(names),
    )


def _setting(names: Sequence[str]) -> str:
    """Return the commands that set secrets; by halves, as `joined`."""
    if len(names) == 1:
        return f"`yard secrets set {names[0]}`"
    half = len(names) // 2
    return TranslatableText("both", "{first} and {second}", first=_setting(names[:half]), second=_setting(names[half:]))


def _usable(tx: Connection, user_id: str, project: str) -> dict[str, _StoredSecret]:
    """Return the secrets by name: those of the user, and of the project if the user is a member of it."""
    member = select(ProjectMember.user_id).where(
        ProjectMember.project == project, ProjectMember.user_id == user_id, _WORKS
    )
    administrator = select(User.id).where(User.id == user_id, User.role == "administrator")
    shared = and_(Secret.project == project, or_(member.exists(), administrator.exists()))
    query = select(*_StoredSecret.columns(Secret)).where(or_(Secret.user_id == user_id, shared))
    rows = tx.execute(query.order_by(Secret.project.is_(None)))  # the owner's own last, so that they count
    return {secret.name: secret for secret in _StoredSecret.each(rows)}
