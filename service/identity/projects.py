"""Projects, who may read their jobs and submit to them, and their members."""

from typing import cast

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from service.db import upsert
from service.db.engine import Database
from service.db.models import Project, ProjectMember, User
from service.errors import ProblemError, field_problem
from service.identity import audit, project_names, roles, users
from service.identity.callers import Caller, Tokens
from service.infra.times import moment
from torchyard import api
from torchyard.api import Role, Visibility
from torchyard.translatable import TranslatableText


def list_projects(db: Database, default: Visibility) -> list[api.Project]:
    """Return all projects with their members, by name; `default` is the visibility of those without one."""
    with db.read() as tx:
        return _projects(tx, default)


def _projects(tx: Connection, default: Visibility, name: str | None = None) -> list[api.Project]:
    members: dict[str, dict[str, Role]] = {}
    projects = select(Project.name, Project.visibility, Project.submitters, Project.restarts, Project.created_us)
    named = select(ProjectMember.project, User.name, ProjectMember.role).join(User, User.id == ProjectMember.user_id)
    if name is not None:
        projects, named = projects.where(Project.name == name), named.where(ProjectMember.project == name)
    for project, user, role in tx.execute(named.order_by(User.name)):
        members.setdefault(project, {})[user] = cast("Role", role)
    return [
        api.Project(
            name=row.name,
            created_at=moment(row.created_us),
            visibility=row.visibility or default,
            members=list(members.get(row.name, ())),
            roles=members.get(row.name, {}),
            submitters=row.submitters,
            restarts=row.restarts,
        )
        for row in tx.execute(projects.order_by(Project.name))
    ]


def closed_projects(db: Database, caller: Caller) -> list[str]:
    """Return the projects that take jobs of their members alone, of which the caller is none."""
    restricted = select(Project.name).where(Project.submitters == "members").order_by(Project.name)
    with db.read() as tx:
        return [name for name in tx.scalars(restricted) if roles.is_closed(caller, name, "members")]


def create_project(
    db: Database, cache: Tokens, caller: Caller, new: api.NewProject, default: Visibility, now: int
) -> api.Project:
    """Add a project; ``conflict`` if there is one of the name."""
    with db.write() as tx:
        try:
            tx.execute(insert(Project).values(**new.model_dump(), created_us=now))
        except IntegrityError as error:
            raise ProblemError(
                "conflict",
                TranslatableText("project-exists", "name: there is a project {name} already.", name=new.name),
            ) from error
        said = new.model_dump(exclude={"name"}, exclude_defaults=True)
        audit.record(tx, caller, "project.create", new.name, now, **said)
        (made,) = _projects(tx, default, new.name)
    cache.forget()
    return made


def change_project(
    db: Database, cache: Tokens, caller: Caller, name: str, changes: api.ProjectChanges, default: Visibility, now: int
) -> api.Project:
    """Set who reads a project's jobs and submits them, and if they may start over; ``not-found`` for an unknown one."""
    roles.may_administer(caller, name)
    given = changes.model_dump(exclude_unset=True)
    with db.unit_of_work(now) as unit:
        project_names.check(unit.tx, name)
        if given:
            unit.tx.execute(update(Project).where(Project.name == name).values(**given))
            audit.record(unit.tx, caller, "project.change", name, now, **given)
        if "restarts" in given:
            unit.wake_scheduler()
        (changed,) = _projects(unit.tx, default, name)
    cache.forget()
    return changed


def add_member(
    db: Database, cache: Tokens, caller: Caller, name: str, user: str, asked: api.ProjectRole | None, now: int
) -> None:
    """Make a user a member, or set a member's role; ``not-found`` for an unknown project or user.

    Adding twice is fine; without a role a member keeps theirs.
    """
    roles.may_administer(caller, name)
    with db.write() as tx:
        project_names.check(tx, name)
        member = users.by_name(tx, user)
        _check_service_account(member, name, asked)
        before = tx.scalar(select(ProjectMember.role).where(*_membership(name, member)))
        role = asked.role if asked is not None else before or "member"
        row = {"project": name, "user_id": member.id, "added_us": now, "role": role}
        new = upsert.insert(tx, ProjectMember).values(**row)
        key = [ProjectMember.project, ProjectMember.user_id]
        tx.execute(new.on_conflict_do_update(index_elements=key, set_={"role": role}))
        if before is None:
            audit.record(tx, caller, "project.add-member", name, now, user=user, role=role)
        elif before != role:
            audit.record(tx, caller, "project.change-member", name, now, user=user, role=role)
    cache.forget()


def remove_member(db: Database, cache: Tokens, caller: Caller, name: str, user: str, now: int) -> None:
    """End a membership; ``not-found`` if there is none, ``conflict`` for the project's own service account."""
    roles.may_administer(caller, name)
    with db.write() as tx:
        project_names.check(tx, name)
        member = users.by_name(tx, user)
        if member.project == name:
            raise ProblemError(
                "conflict",
                TranslatableText(
                    "service-account-stays",
                    "user: {user} is a service account of this project: `yard users remove {user}` ends it.",
                    user=user,
                ),
            )
        if not tx.execute(delete(ProjectMember).where(*_membership(name, member))).rowcount:
            raise ProblemError(
                "not-found",
                TranslatableText(
                    "no-member",
                    "There is no member of project {project} named {user!r}.",
                    project=name,
                    user=user[:100],
                ),
            )
        audit.record(tx, caller, "project.remove-member", name, now, user=user)
    cache.forget()


def _membership(project: str, user: api.User) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return (ProjectMember.project == project, ProjectMember.user_id == user.id)


def _check_service_account(member: api.User, project: str, asked: api.ProjectRole | None) -> None:
    """Refuse to let a service account into another project, or to make it an administrator."""
    if member.project not in (None, project):
        raise field_problem(
            "user",
            TranslatableText(
                "service-account-elsewhere",
                "{name} is a service account of project {project}: it reaches no other",
                name=member.name,
                project=member.project,
            ),
        )
    if asked is not None:
        users.refuse_administrator(member.project, asked.role)
