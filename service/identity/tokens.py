"""Tokens: create, list and revoke them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, insert, or_, select, update

from service.db.engine import Database
from service.db.models import Token, User
from service.db.records.identity import TokenRecord
from service.errors import ProblemError, field_problem, not_found
from service.identity import audit, roles, token_files, users
from service.identity.callers import Caller, Tokens, expand, hash_secret, new_secret
from service.infra.times import moment
from torchyard import api
from torchyard.ids import new_id
from torchyard.translatable import TranslatableText


@dataclass(frozen=True, slots=True)
class _OwnedToken(TokenRecord):
    """A token with the name of its user."""

    user: str


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
        "session": record.parent_id is not None,
    }


def _tokens() -> Select[Any]:
    return select(Token.__table__, User.name.label("user")).join(User, User.id == Token.user_id)


def own_tokens(db: Database, caller: Caller, now: int) -> list[api.Token]:
    """Return the caller's valid tokens and sessions."""
    return _valid_tokens(db, now, caller.user_id)


def all_tokens(db: Database, caller: Caller, now: int) -> list[api.Token]:
    """Return the valid tokens and sessions of all users; ``forbidden`` unless the caller is an administrator."""
    if not caller.admin:
        raise ProblemError(
            "forbidden", TranslatableText("all-tokens", "all: only an administrator sees other people's tokens.")
        )
    return _valid_tokens(db, now, None)


def _valid_tokens(db: Database, now: int, user_id: str | None) -> list[api.Token]:
    query = _tokens().where(Token.revoked_us.is_(None), or_(Token.expires_us.is_(None), Token.expires_us > now))
    if user_id is not None:
        query = query.where(Token.user_id == user_id)
    with db.read() as tx:
        return [api.Token(**_token(each)) for each in _OwnedToken.each(tx.execute(query.order_by(Token.id)))]


def create_token(db: Database, caller: Caller, request: api.TokenRequest, now: int) -> api.NewToken:
    """Create a token with no more rights than its maker's; the secret is in the response and nowhere else."""
    with db.write() as tx:
        owner = users.by_name(tx, request.user or caller.name)
        _check_request(caller, request, owner)
        ends = _expiry(tx, caller, request, now)
        made = issue(tx, owner.id, request.name, request.scopes, now, node=request.node, expires_us=ends)
        audit.record(
            tx, caller, "token.create", made.id, now, user=owner.name, scopes=list(request.scopes), node=request.node
        )
    return made


def node_tokens(db: Database, now: int) -> list[str]:
    """Return the ids of the tokens with which nodes may report."""
    valid = (Token.node.is_not(None), Token.revoked_us.is_(None), User.deactivated_us.is_(None))
    unexpired = or_(Token.expires_us.is_(None), Token.expires_us > now)
    with db.read() as tx:
        return list(tx.scalars(select(Token.id).join(User, User.id == Token.user_id).where(*valid, unexpired)))


def _check_request(caller: Caller, request: api.TokenRequest, owner: api.User) -> None:
    # Tokens of one that leaked would outlive its rotation.
    roles.refuse_service_account(caller, TranslatableText("makes-no-tokens", "makes no tokens"))
    if not owner.active:
        raise _deactivated(owner.name)
    if owner.id != caller.user_id and not caller.admin:
        raise ProblemError(
            "forbidden", TranslatableText("tokens-of-others", "user: only an administrator makes tokens for others.")
        )
    if ("node" in request.scopes) != (request.node is not None) or (
        "node" in request.scopes and len(request.scopes) > 1
    ):
        raise field_problem(
            "node", TranslatableText("node-token", "a node's token has the scope node alone, and names its node")
        )
    if request.node is not None and owner.project is not None:
        raise field_problem(
            "user",
            TranslatableText(
                "node-token-owner", "{name} is a service account: a node's token is an administrator's", name=owner.name
            ),
        )
    if request.node is not None and not caller.admin:
        raise ProblemError(
            "forbidden", TranslatableText("node-token-maker", "scopes: only an administrator makes tokens for nodes.")
        )
    beyond = set(request.scopes) - caller.scopes - {"node"}
    if beyond or ("admin" in request.scopes and not owner.admin):
        wrong = ", ".join(sorted(beyond or {"admin"}))
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "scopes-beyond", "scopes: {scopes} is more than this user or the token in use has.", scopes=wrong
            ),
        )
    if request.expires_in is not None and request.expires_in <= 0:
        raise field_problem("expires_in", TranslatableText("expires-in", "must be longer than nothing, such as 30d"))


def _deactivated(name: str) -> ProblemError:
    words = TranslatableText(
        "user-deactivated", "{name} is deactivated: `yard users set {name} --active` ends that", name=name
    )
    return field_problem("user", words)


def _expiry(tx: Connection, caller: Caller, request: api.TokenRequest, now: int) -> int | None:
    """Expiry of a new token: it does not outlive the one that made it, or that opened the session which did."""
    asked = None if request.expires_in is None else now + request.expires_in * 1_000_000
    return _earliest(_limit(tx, caller), asked)


def _limit(tx: Connection, caller: Caller) -> int | None:
    """Expiry of the token in use, or of the one that opened the session in use."""
    maker = select(func.coalesce(Token.parent_id, Token.id)).where(Token.id == caller.token_id).scalar_subquery()
    return tx.scalar(select(Token.expires_us).where(Token.id == maker))


def _earliest(*ends: int | None) -> int | None:
    return min((end for end in ends if end is not None), default=None)


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
    """Store a fresh token and return it with its secret; ``invalid-request`` for a user who is deactivated."""
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
    # Asked once more: the insertion waits for a deactivation under way, which has not revoked this one.
    if tx.scalar(select(User.deactivated_us).where(User.id == user_id)) is not None:
        raise _deactivated(made.user)
    return api.NewToken(**_token(made), secret=secret)


def rotate(
    db: Database, cache: Tokens, caller: Caller, token_id: str, asked: api.TokenRotation, now: int
) -> api.NewToken:
    """Replace a token by one of the same name, rights and lifetime, whose secret only the response has.

    The old one ends at once or after the grace, with the sessions that it opened; the home's files have the new one.
    ``not-found`` for another user's token, ``forbidden`` for one with more rights, ``not-acceptable-state`` for a
    session.
    """
    with db.write() as tx:
        old = _own_token(tx, caller, token_id)
        if old.parent_id is not None:
            raise ProblemError(
                "not-acceptable-state",
                TranslatableText("token-is-session", "This is a session of the dashboard: sign out, then in again."),
            )
        lifetime = None if old.expires_us is None else now + old.expires_us - old.created_us
        expires_us = _earliest(lifetime, _limit(tx, caller))
        made = issue(tx, old.user_id, old.name, old.scopes, now, node=old.node, expires_us=expires_us)
        _end_after(tx, old.id, None if not asked.grace else now + asked.grace * 1_000_000, now)
        audit.record(tx, caller, "token.rotate", old.id, now, user=made.user, new=made.id, grace_s=asked.grace or 0)
    cache.forget()
    token_files.replace(old.sha256, made.secret)
    return made


def _end_after(tx: Connection, token_id: str, end_us: int | None, now: int) -> None:
    """Let a token and its sessions expire at a time, or revoke them; what ends sooner stays so."""
    alive = update(Token).where(or_(Token.id == token_id, Token.parent_id == token_id), Token.revoked_us.is_(None))
    if end_us is None:
        tx.execute(alive.values(revoked_us=now))
    else:
        tx.execute(alive.where(or_(Token.expires_us.is_(None), Token.expires_us > end_us)).values(expires_us=end_us))


def revoke(db: Database, cache: Tokens, caller: Caller, token_id: str, now: int) -> None:
    """End a token and the sessions that it opened.

    ``not-found`` for another user's token, ``forbidden`` for one with more rights.
    """
    with db.write() as tx:
        end(tx, caller, token_id, now)
    cache.forget()


def end(tx: Connection, caller: Caller, token_id: str, now: int) -> None:
    """Revoke a token in a transaction, as `revoke` does; call `Tokens.forget` after the commit."""
    token = _own_token(tx, caller, token_id)
    _end_after(tx, token.id, None, now)
    audit.record(tx, caller, "token.revoke", token_id, now)


def _own_token(tx: Connection, caller: Caller, token_id: str) -> TokenRecord:
    # Locked: a session that it opens meanwhile is there when it ends, and of two that replace it one does.
    token = TokenRecord.first(tx.execute(select(Token.__table__).where(Token.id == token_id).with_for_update()))
    if token is None or token.revoked_us is not None or (token.user_id != caller.user_id and not caller.admin):
        raise not_found("token", token_id)
    in_use = TokenRecord.one(tx.execute(select(Token.__table__).where(Token.id == caller.token_id)))
    # By the tokens' own scopes: who has become a viewer still ends what they had made before.
    if not caller.admin and not expand(in_use.scopes).issuperset(token.scopes):
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "token-rights", "This token may do more than the one in use: end it with one that may as much."
            ),
        )
    return token
