"""Projects, who may read their jobs, and their members."""

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from service.db import upsert
from service.db.engine import Database
from service.db.models import Project, ProjectMember, User
from service.errors import ProblemError, not_found
from service.identity import audit, users
from service.identity.callers import Caller, Tokens
from service.infra.times import moment
from torchyard import api
from torchyard.api import Visibility


def list_projects(db: Database, default: Visibility) -> list[api.Project]:
    """Return all projects with their members, by name; `default` is the visibility of those without one."""
    with db.read() as tx:
        return _projects(tx, default)


def _projects(tx: Connection, default: Visibility, name: str | None = None) -> list[api.Project]:
    members: dict[str, list[str]] = {}
    projects = select(Project.name, Project.visibility, Project.created_us)
    named = select(ProjectMember.project, User.name).join(User, User.id == ProjectMember.user_id)
    if name is not None:
        projects, named = projects.where(Project.name == name), named.where(ProjectMember.project == name)
    for project, user in tx.execute(named.order_by(User.name)):
        members.setdefault(project, []).append(user)
    return [
        api.Project(
            name=row.name,
            created_at=moment(row.created_us),
            visibility=row.visibility or default,
            members=members.get(row.name, []),
        )
        for row in tx.execute(projects.order_by(Project.name))
    ]


def exists(tx: Connection, name: str) -> bool:
    """Return whether there is a project of the name."""
    return tx.scalar(select(Project.name).where(Project.name == name)) is not None


def check(tx: Connection, name: str) -> None:
    """Raise ``not-found`` unless there is a project of the name."""
    if not exists(tx, name):
        raise not_found("project", name)


def create_project(
    db: Database, cache: Tokens, caller: Caller, new: api.NewProject, default: Visibility, now: int
) -> api.Project:
    """Add a project; ``conflict`` if there is one of the name."""
    with db.write() as tx:
        try:
            tx.execute(insert(Project).values(name=new.name, visibility=new.visibility, created_us=now))
        except IntegrityError as error:
            raise ProblemError("conflict", f"name: there is a project {new.name} already.") from error
        said = {} if new.visibility is None else {"visibility": new.visibility}
        audit.record(tx, caller, "project.create", new.name, now, **said)
        (made,) = _projects(tx, default, new.name)
    cache.forget()
    return made


def change_project(
    db: Database, cache: Tokens, caller: Caller, name: str, changes: api.ProjectChanges, default: Visibility, now: int
) -> api.Project:
    """Set who may read the jobs of a project; ``not-found`` for an unknown one."""
    with db.write() as tx:
        check(tx, name)
        if "visibility" in changes.model_fields_set:
            tx.execute(update(Project).where(Project.name == name).values(visibility=changes.visibility))
            audit.record(tx, caller, "project.change", name, now, visibility=changes.visibility)
        (changed,) = _projects(tx, default, name)
    cache.forget()
    return changed


def add_member(db: Database, cache: Tokens, caller: Caller, name: str, user: str, now: int) -> None:
    """Make a user a member; ``not-found`` for an unknown project or user. Adding twice is fine."""
    with db.write() as tx:
        check(tx, name)
        member = users.by_name(tx, user)
        row = {"project": name, "user_id": member.id, "added_us": now}
        new = upsert.insert(tx, ProjectMember).values(**row).on_conflict_do_nothing().returning(ProjectMember.user_id)
        if tx.scalar(new) is not None:
            audit.record(tx, caller, "project.add-member", name, now, user=user)
    cache.forget()


def remove_member(db: Database, cache: Tokens, caller: Caller, name: str, user: str, now: int) -> None:
    """End a membership; ``not-found`` if there is none."""
    with db.write() as tx:
        check(tx, name)
        member = users.by_name(tx, user)
        which = (ProjectMember.project == name, ProjectMember.user_id == member.id)
        if not tx.execute(delete(ProjectMember).where(*which)).rowcount:
            raise not_found(f"member of project {name} named", user)
        audit.record(tx, caller, "project.remove-member", name, now, user=user)
    cache.forget()
