"""Users, tokens, projects, and the record of who changed them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from service.db.models import Audit, Project, Token, User
from service.errors import ProblemError, field_problem, not_found
from service.identity import unix_accounts
from service.identity.callers import Caller, hash_secret, new_secret
from service.infra.times import moment
from torchyard import api
from torchyard.api.sharing import UserChanges
from torchyard.ids import new_id


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
    rows = tx.execute(query.order_by(Audit.id.desc()).limit(limit + 1)).all()
    return [_entry(row) for row in rows[:limit]], rows[limit - 1].id if len(rows) > limit else None


def _entry(row: Row[Any]) -> api.AuditEntry:
    return api.AuditEntry(
        id=row.id,
        at=moment(row.at_us),
        user=row.name or row.user_id,
        action=row.action,
        subject=row.subject,
        data=row.data,
    )


def _user(row: Row[Any], nodes: unix_accounts.AccountWarnings) -> api.User:
    return api.User(
        id=row.id,
        name=row.name,
        admin=row.admin,
        unix_user=row.unix_user,
        created_at=moment(row.created_us),
        active=row.deactivated_us is None,
        warning=nodes.warning(row) if row.deactivated_us is None else None,
    )


def users(tx: Connection) -> list[api.User]:
    """Return all users, by name."""
    nodes = unix_accounts.AccountWarnings(tx)
    return [_user(row, nodes) for row in tx.execute(select(User.__table__).order_by(User.name))]


def user(tx: Connection, name: str) -> api.User:
    """A user by name."""
    row = tx.execute(select(User.__table__).where(User.name == name)).one_or_none()
    if row is None:
        raise not_found("user", name)
    return _user(row, unix_accounts.AccountWarnings(tx))


def user_by_id(tx: Connection, user_id: str) -> api.User:
    """A user by id."""
    row = tx.execute(select(User.__table__).where(User.id == user_id)).one()
    return _user(row, unix_accounts.AccountWarnings(tx))


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


def _token(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "user": row.user,
        "name": row.name,
        "scopes": row.scopes,
        "node": row.node,
        "created_at": moment(row.created_us),
        "expires_at": None if row.expires_us is None else moment(row.expires_us),
        "last_used_at": None if row.last_used_us is None else moment(row.last_used_us),
    }


def _tokens() -> Any:
    return select(Token.__table__, User.name.label("user")).join(User, User.id == Token.user_id)


def tokens(tx: Connection, now: int, user_id: str | None) -> list[api.Token]:
    """Tokens that count, of a user or of everybody; sessions of the dashboard are among them."""
    query = _tokens().where(Token.revoked_us.is_(None), or_(Token.expires_us.is_(None), Token.expires_us > now))
    if user_id is not None:
        query = query.where(Token.user_id == user_id)
    return [api.Token(**_token(row)) for row in tx.execute(query.order_by(Token.id))]


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
    row = tx.execute(_tokens().where(Token.id == token_id)).one()
    return api.NewToken(**_token(row), secret=secret)


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
