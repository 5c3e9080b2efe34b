"""Users."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from service.db.engine import Database
from service.db.models import ProjectMember, Token, User
from service.db.records.identity import UserRecord
from service.errors import ProblemError, field_problem, not_found
from service.identity import audit, project_names, unix_accounts
from service.identity.callers import Caller, Tokens
from service.infra.times import moment
from torchyard import api
from torchyard.api import Role
from torchyard.api.problems import Sentence
from torchyard.api.sharing import UserChanges
from torchyard.ids import new_id
from torchyard.translatable import TranslatableText

Made = TypeVar("Made")


def _user(record: UserRecord, warnings: unix_accounts.AccountWarnings) -> api.User:
    active = record.deactivated_us is None
    account = unix_accounts.UserAccount(record.id, record.name, record.unix_user, record.deactivated_us)
    warning = warnings.warning(account) if active else None
    return api.User(
        id=record.id,
        name=record.name,
        admin=record.role == "administrator",
        role=record.role,
        project=record.project,
        unix_user=record.unix_user,
        created_at=moment(record.created_us),
        active=active,
        warning=warning,
        warning_sentence=None if warning is None else Sentence(message=warning),
    )


def list_users(db: Database, caller: Caller) -> list[api.User]:
    """Return all users, by name; to administrators also when they were last seen."""
    query = select(User.__table__).order_by(User.name)
    with db.read() as tx:
        warnings = unix_accounts.AccountWarnings(tx)
        found = [_user(each, warnings) for each in UserRecord.each(tx.execute(query))]
        seen = _last_seen(tx) if caller.admin else {}
    return [each.model_copy(update={"last_seen_at": seen.get(each.id)}) for each in found]


def _last_seen(tx: Connection) -> dict[str, datetime]:
    """Return when a token of a user's, other than a node's, was last used, by user id."""
    used = select(Token.user_id, func.max(Token.last_used_us)).where(Token.node.is_(None)).group_by(Token.user_id)
    return {user_id: moment(at) for user_id, at in tx.execute(used) if at is not None}


def own_user(db: Database, caller: Caller) -> api.User:
    """Return the user who calls."""
    with db.read() as tx:
        return by_id(tx, caller.user_id)


def by_name(tx: Connection, name: str) -> api.User:
    """Return a user by name; ``not-found`` for an unknown one."""
    found = UserRecord.first(tx.execute(select(User.__table__).where(User.name == name)))
    if found is None:
        raise not_found("user", name)
    return _user(found, unix_accounts.AccountWarnings(tx))


def by_id(tx: Connection, user_id: str) -> api.User:
    """Return a user by id."""
    found = UserRecord.one(tx.execute(select(User.__table__).where(User.id == user_id)))
    return _user(found, unix_accounts.AccountWarnings(tx))


def create_user(db: Database, caller: Caller, new: api.NewUser, now: int) -> api.User:
    """Add a user, or the service account of a project; ``conflict`` if the name is taken."""
    _refuse_root(new.unix_user)
    role = _role(admin=new.admin, role=new.role)
    with db.write() as tx:
        made = add(tx, new.name, role, now, unix_user=new.unix_user, service_project=new.project)
        said = {} if new.project is None else {"project": new.project}
        audit.record(tx, caller, "user.create", new.name, now, role=role, unix_user=new.unix_user, **said)
        return made


def add(
    tx: Connection,
    name: str,
    role: Role,
    now: int,
    *,
    unix_user: str | None = None,
    service_project: str | None = None,
) -> api.User:
    """Store a user; a service account is a viewer but in its project, where it has the role.

    ``conflict`` if the name is taken, ``not-found`` for an unknown project, ``invalid-request`` for an administrator
    that is no person.
    """
    if service_project is not None:
        project_names.check(tx, service_project)
        refuse_administrator(service_project, role)
    values = {"name": name, "unix_user": unix_user, "project": service_project, "created_us": now}
    user_id = new_id("user")
    try:
        tx.execute(insert(User).values(id=user_id, role=role if service_project is None else "viewer", **values))
    except IntegrityError as error:
        raise ProblemError(
            "conflict",
            TranslatableText("user-exists", "name: there is a user {name} already: take another name.", name=name),
        ) from error
    if service_project is not None:
        member = {"project": service_project, "user_id": user_id, "added_us": now, "role": role}
        tx.execute(insert(ProjectMember).values(**member))
    return by_name(tx, name)


def sign_in_new(sign_in: Callable[[], Made]) -> Made:
    """Sign somebody in whom that may add; again, where another sign-in of theirs has added them at the same time."""
    try:
        return sign_in()
    except ProblemError as error:
        if error.kind != "conflict":
            raise
    return sign_in()


def refuse_administrator(service_project: str | None, role: Role) -> None:
    """Raise ``invalid-request`` for a service account that would be an administrator."""
    if service_project is not None and role == "administrator":
        raise field_problem(
            "role",
            TranslatableText(
                "service-account-role", "a service account is member or viewer of its project, never administrator"
            ),
        )


def _role(*, admin: bool, role: Role | None) -> Role:
    """Return the role that is asked for by either field."""
    if admin and role not in (None, "administrator"):
        raise _contradiction(role)
    return "administrator" if admin else role or "member"


def _contradiction(role: Role) -> ProblemError:
    words = TranslatableText("role-and-admin", "{role} and admin contradict each other: give one of them", role=role)
    return field_problem("role", words)


def change_user(db: Database, cache: Tokens, caller: Caller, name: str, changes: UserChanges, now: int) -> api.User:
    """Change a user; ``conflict`` if no administrator would be left.

    A deactivated user loses all tokens and sessions, a former administrator those with the scope admin. What a viewer's
    tokens may no longer do is lost with the next look at them.
    """
    _refuse_root(changes.unix_user)
    with db.write() as tx:
        changed = _change_user(tx, caller, name, changes, now)
    cache.forget()
    return changed


def take_role(tx: Connection, name: str, role: Role, now: int) -> api.User:
    """Give a user the role that their sign-in says; the only administrator stays one, so that there is one.

    Call `Tokens.forget` after the commit.
    """
    administrators = _lock_administrators(tx, name)
    before = by_name(tx, name)
    if before.role == role or administrators == {before.id}:
        return before
    tx.execute(update(User).where(User.id == before.id).values(role=role))
    after = by_name(tx, name)
    _end_tokens(tx, after, now)
    audit.record_user(tx, before.id, "user.change", name, now, role=role, by="sign-in")
    return after


def deactivate_user(db: Database, cache: Tokens, caller: Caller, name: str, now: int) -> None:
    """Deactivate a user, as `change_user` does."""
    change_user(db, cache, caller, name, UserChanges(active=False), now)


def _refuse_root(unix_user: str | None) -> None:
    """Raise ``invalid-request`` for root's account: whose jobs run as root are administrators of the whole machine."""
    if unix_user == "root":
        raise field_problem(
            "unix_user",
            TranslatableText(
                "unix-root", "no jobs run as root for somebody: create an account for them, and name that"
            ),
        )


def _change_user(tx: Connection, caller: Caller, name: str, changes: UserChanges, now: int) -> api.User:
    given = changes.model_dump(include=changes.model_fields_set)
    administrators = _lock_administrators(tx, name)
    before = by_name(tx, name)
    role = _changed_role(before, changes)
    after = before.model_copy(update={**given, "role": role, "admin": role == "administrator"})
    if administrators == {before.id} and not (after.admin and after.active):
        raise ProblemError(
            "conflict",
            TranslatableText(
                "only-administrator",
                "{name} is the only administrator: make somebody else one first (`yard users set NAME --admin`)",
                name=name,
            ),
        )
    deactivated_us = None if after.active else func.coalesce(User.deactivated_us, now)
    values = {"role": role, "unix_user": after.unix_user, "deactivated_us": deactivated_us}
    tx.execute(update(User).where(User.id == before.id).values(**values))
    if not after.active:
        _hand_on_nodes(tx, caller, before)
    _end_tokens(tx, after, now)
    audit.record(tx, caller, "user.change", name, now, **given)
    return by_name(tx, name)


def _changed_role(before: api.User, changes: UserChanges) -> Role:
    """Return the role after the changes, of which `admin` names one as `role` does."""
    given = changes.model_fields_set
    if not given & {"admin", "role"}:
        return before.role
    if before.project is not None:
        raise field_problem(
            "role",
            TranslatableText(
                "service-account-set-role",
                "{name} is a service account: `yard projects members add {project} {name} --role ROLE` sets its role "
                "in its project",
                name=before.name,
                project=before.project,
            ),
        )
    if "role" not in given:
        return "administrator" if changes.admin else "member" if before.admin else before.role
    if "admin" in given and changes.admin != (changes.role == "administrator"):
        raise _contradiction(changes.role)
    return changes.role


def _lock_administrators(tx: Connection, name: str) -> set[str]:
    """Lock a user and all administrators, whose ids it returns: of two, each could remove the other."""
    admin = User.role == "administrator"
    query = select(User.id, User.role, User.deactivated_us).where(or_(User.name == name, admin))
    rows = tx.execute(query.order_by(User.id).with_for_update())
    return {row.id for row in rows if row.role == "administrator" and row.deactivated_us is None}


def _hand_on_nodes(tx: Connection, caller: Caller, leaving: api.User) -> None:
    """Give the tokens of nodes to another administrator: without them, nodes would fall silent."""
    heir = caller.user_id
    if heir == leaving.id:
        others = select(User.id).where(
            User.role == "administrator", User.deactivated_us.is_(None), User.id != leaving.id
        )
        heir = tx.execute(others.order_by(User.created_us, User.id).limit(1)).scalar_one()
    tx.execute(update(Token).where(Token.user_id == leaving.id, Token.node.is_not(None)).values(user_id=heir))


def _end_tokens(tx: Connection, owner: api.User, now: int) -> None:
    """Revoke the tokens that their owner is not entitled to any more."""
    query = select(Token.id, Token.scopes).where(Token.user_id == owner.id, Token.revoked_us.is_(None))
    ended = [row.id for row in tx.execute(query) if not owner.active or ("admin" in row.scopes and not owner.admin)]
    tx.execute(update(Token).where(Token.id.in_(ended)).values(revoked_us=now))
