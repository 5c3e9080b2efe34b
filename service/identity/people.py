"""Users, tokens, projects, and the record of who changed them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from service.db.models import Audit, Project, Token, User
from service.db.records.identity import TokenRecord, UserRecord
from service.db.records.record import Record
from service.errors import ProblemError, field_problem, not_found
from service.identity import unix_accounts
from service.identity.callers import Caller, hash_secret, new_secret
from service.infra.times import moment
from torchyard import api
from torchyard.api.sharing import UserChanges
from torchyard.ids import new_id


@dataclass(frozen=True, slots=True)
class _AuditRecord(Record):
    """A row of `audit`, with the user's name; None for a user who is not known any more."""

    id: str
    at_us: int
    user_id: str
    name: str | None
    action: str
    subject: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _OwnedToken(TokenRecord):
    """A token with the name of its user."""

    user: str


def audit(tx: Connection, caller: Caller, action: str, subject: str, now: int, **data: Any) -> None:
    """Record what a caller has changed."""
    tx.execute(
        insert(Audit).values(
            id=new_id("audit"), at_us=now, user_id=caller.user_id, action=action, subject=subject, data=data
        )
    )


def audit_page(tx: Connection, cursor: str | None, limit: int) -> tuple[list[api.AuditEntry], str | None]:
    """The newest entries, and the cursor of the next page."""
    query = select(Audit.__table__, User.name).outerjoin(User, User.id == Audit.user_id)
    if cursor is not None:
        query = query.where(Audit.id < cursor)
    found = _AuditRecord.all(tx.execute(query.order_by(Audit.id.desc()).limit(limit + 1)))
    return [_entry(each) for each in found[:limit]], found[limit - 1].id if len(found) > limit else None


def _entry(record: _AuditRecord) -> api.AuditEntry:
    return api.AuditEntry(
        id=record.id,
        at=moment(record.at_us),
        user=record.name or record.user_id,
        action=record.action,
        subject=record.subject,
        data=record.data,
    )


def _user(record: UserRecord, warnings: unix_accounts.AccountWarnings) -> api.User:
    active = record.deactivated_us is None
    account = unix_accounts.UserAccount(record.id, record.name, record.unix_user)
    return api.User(
        id=record.id,
        name=record.name,
        admin=record.admin,
        unix_user=record.unix_user,
        created_at=moment(record.created_us),
        active=active,
        warning=warnings.warning(account) if active else None,
    )


def users(tx: Connection) -> list[api.User]:
    """Return all users, by name."""
    warnings = unix_accounts.AccountWarnings(tx)
    return [_user(each, warnings) for each in UserRecord.each(tx.execute(select(User.__table__).order_by(User.name)))]


def user(tx: Connection, name: str) -> api.User:
    """A user by name."""
    found = UserRecord.first(tx.execute(select(User.__table__).where(User.name == name)))
    if found is None:
        raise not_found("user", name)
    return _user(found, unix_accounts.AccountWarnings(tx))


def user_by_id(tx: Connection, user_id: str) -> api.User:
    """A user by id."""
    found = UserRecord.one(tx.execute(select(User.__table__).where(User.id == user_id)))
    return _user(found, unix_accounts.AccountWarnings(tx))


def create_user(tx: Connection, caller: Caller, new: api.NewUser, now: int) -> api.User:
    """Add a user; ``conflict`` if the name is taken."""
    try:
        tx.execute(insert(User).values(id=new_id("user"), created_us=now, **new.model_dump()))
    except IntegrityError as error:
        raise ProblemError("conflict", f"name: there is a user {new.name} already: take another name.") from error
    audit(tx, caller, "user.create", new.name, now, admin=new.admin, unix_user=new.unix_user)
    return user(tx, new.name)


def change_user(tx: Connection, caller: Caller, name: str, changes: UserChanges, now: int) -> api.User:
    """Change a user; ``conflict`` if no administrator would be left.

    A deactivated user loses all tokens and sessions, a former administrator those with the scope admin.

    Call `callers.Tokens.forget` after the commit.
    """
    given = changes.model_dump(include=changes.model_fields_set)
    administrators = _lock_administrators(tx, name)
    before = user(tx, name)
    after = before.model_copy(update=given)
    if administrators == {before.id} and not (after.admin and after.active):
        raise ProblemError(
            "conflict",
            f"{name} is the only administrator: make somebody else one first (`yard users set NAME --admin`)",
        )
    deactivated_us = None if after.active else func.coalesce(User.deactivated_us, now)
    values = {"admin": after.admin, "unix_user": after.unix_user, "deactivated_us": deactivated_us}
    tx.execute(update(User).where(User.id == before.id).values(**values))
    if not after.active:
        _hand_on_nodes(tx, caller, before)
    _end_tokens(tx, after, now)
    audit(tx, caller, "user.change", name, now, **given)
    return user(tx, name)


def _lock_administrators(tx: Connection, name: str) -> set[str]:
    """Lock a user and all administrators, whose ids it returns: of two, each could remove the other."""
    query = select(User.id, User.admin, User.deactivated_us).where(or_(User.name == name, User.admin))
    rows = tx.execute(query.order_by(User.id).with_for_update())
    return {row.id for row in rows if row.admin and row.deactivated_us is None}


def _hand_on_nodes(tx: Connection, caller: Caller, leaving: api.User) -> None:
    """Give the tokens of nodes to another administrator: without them, nodes would fall silent."""
    heir = caller.user_id
    if heir == leaving.id:
        others = select(User.id).where(User.admin, User.deactivated_us.is_(None), User.id != leaving.id)
        heir = tx.execute(others.order_by(User.created_us, User.id).limit(1)).scalar_one()
    tx.execute(update(Token).where(Token.user_id == leaving.id, Token.node.is_not(None)).values(user_id=heir))


def _end_tokens(tx: Connection, owner: api.User, now: int) -> None:
    """Revoke the tokens that their owner is not entitled to any more."""
    query = select(Token.id, Token.scopes).where(Token.user_id == owner.id, Token.revoked_us.is_(None))
    ended = [row.id for row in tx.execute(query) if not owner.active or ("admin" in row.scopes and not owner.admin)]
    tx.execute(update(Token).where(Token.id.in_(ended)).values(revoked_us=now))


def projects(tx: Connection) -> list[api.Project]:
    """All projects, by name."""
    rows = tx.execute(select(Project.__table__).order_by(Project.name))
    return [api.Project(name=row.name, created_at=moment(row.created_us)) for row in rows]


def create_project(tx: Connection, caller: Caller, name: str, now: int) -> api.Project:
    """Add a project; ``conflict`` if there is one of the name."""
    try:
        tx.execute(insert(Project).values(name=name, created_us=now))
    except IntegrityError as error:
        raise ProblemError("conflict", f"name: there is a project {name} already.") from error
    audit(tx, caller, "project.create", name, now)
    return api.Project(name=name, created_at=moment(now))


def _token(record: _OwnedToken) -> dict[str, Any]:
    return {
        "id": record.id,
        "user": record.user,
        "name": record.name,
        "scopes": list(record.scopes),
        "node": record.node,
        "created_at": moment(record.created_us),
        "expires_at": None if record.expires_us is None else moment(record.expires_us),
        "last_used_at": None if record.last_used_us is None else moment(record.last_used_us),
    }


def _tokens() -> Select[Any]:
    return select(Token.__table__, User.name.label("user")).join(User, User.id == Token.user_id)


def tokens(tx: Connection, now: int, user_id: str | None) -> list[api.Token]:
    """Tokens that count, of a user or of everybody; sessions of the dashboard are among them."""
    query = _tokens().where(Token.revoked_us.is_(None), or_(Token.expires_us.is_(None), Token.expires_us > now))
    if user_id is not None:
        query = query.where(Token.user_id == user_id)
    return [api.Token(**_token(each)) for each in _OwnedToken.each(tx.execute(query.order_by(Token.id)))]


def create_token(tx: Connection, caller: Caller, request: api.TokenRequest, now: int) -> api.NewToken:
    """Create a token with no more rights than its maker's; the secret is in the response and nowhere else."""
    owner = user(tx, request.user or caller.name)
    _check_request(caller, request, owner)
    made = issue(
        tx, owner.id, request.name, request.scopes, now, node=request.node, expires_us=_expiry(tx, caller, request, now)
    )
    audit(tx, caller, "token.create", made.id, now, user=owner.name, scopes=list(request.scopes), node=request.node)
    return made


def _check_request(caller: Caller, request: api.TokenRequest, owner: api.User) -> None:
    if not owner.active:
        raise field_problem("user", f"{owner.name} is deactivated: `yard users set {owner.name} --active` ends that")
    if owner.id != caller.user_id and not caller.admin:
        raise ProblemError("forbidden", "user: only an administrator makes tokens for others.")
    if ("node" in request.scopes) != (request.node is not None) or (
        "node" in request.scopes and len(request.scopes) > 1
    ):
        raise field_problem("node", "a node's token has the scope node alone, and names its node")
    if request.node is not None and not caller.admin:
        raise ProblemError("forbidden", "scopes: only an administrator makes tokens for nodes.")
    beyond = set(request.scopes) - caller.scopes - {"node"}
    if beyond or ("admin" in request.scopes and not owner.admin):
        wrong = ", ".join(sorted(beyond or {"admin"}))
        raise ProblemError("forbidden", f"scopes: {wrong} is more than this user or the token in use has.")
    if request.expires_in is not None and request.expires_in <= 0:
        raise field_problem("expires_in", "must be longer than nothing, such as 30d")


def _expiry(tx: Connection, caller: Caller, request: api.TokenRequest, now: int) -> int | None:
    """Expiry of a new token: it does not outlive the one that made it, or that opened the session which did."""
    maker = select(func.coalesce(Token.parent_id, Token.id)).where(Token.id == caller.token_id).scalar_subquery()
    limit = tx.scalar(select(Token.expires_us).where(Token.id == maker))
    asked = None if request.expires_in is None else now + request.expires_in * 1_000_000
    return min((end for end in (limit, asked) if end is not None), default=None)


def issue(
    tx: Connection,
    user_id: str,
    name: str,
    scopes: Sequence[str],
    now: int,
    *,
    node: str | None = None,
    expires_us: int | None = None,
    parent_id: str | None = None,
) -> api.NewToken:
    """Store a fresh token and return it with its secret."""
    secret, token_id = new_secret(), new_id("tok")
    tx.execute(
        insert(Token).values(
            id=token_id,
            user_id=user_id,
            name=name,
            sha256=hash_secret(secret),
            scopes=sorted(set(scopes)),
            node=node,
            parent_id=parent_id,
            created_us=now,
            expires_us=expires_us,
        )
    )
    made = _OwnedToken.one(tx.execute(_tokens().where(Token.id == token_id)))
    return api.NewToken(**_token(made), secret=secret)


def revoke(tx: Connection, caller: Caller, token_id: str, now: int) -> None:
    """End a token and the sessions that it opened; ``not-found`` for another user's, ``forbidden`` for
    one with more rights.

    Call `callers.Tokens.forget` after the commit.
    """
    row = tx.execute(select(Token.user_id, Token.revoked_us, Token.scopes).where(Token.id == token_id)).one_or_none()
    if row is None or row.revoked_us is not None or (row.user_id != caller.user_id and not caller.admin):
        raise not_found("token", token_id)
    if not caller.admin and not caller.scopes.issuperset(row.scopes):
        raise ProblemError("forbidden", "This token may do more than the one in use: end it with one that may as much.")
    tx.execute(
        update(Token)
        .where(or_(Token.id == token_id, Token.parent_id == token_id), Token.revoked_us.is_(None))
        .values(revoked_us=now)
    )
    audit(tx, caller, "token.revoke", token_id, now)
