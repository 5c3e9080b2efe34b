"""Sessions of the dashboard, each with a token of its own."""

from sqlalchemy import Connection, delete, func, select, update

from service.db.engine import Database
from service.db.models import Token, User
from service.db.records.identity import TokenRecord
from service.errors import ProblemError
from service.identity import audit, sign_in_codes, tokens, users
from service.identity.callers import Caller, Tokens
from service.infra.times import moment
from torchyard import api
from torchyard.translatable import TranslatableText

SESSION_S = 30 * 86_400
NAME = "dashboard session"
LINK_NAME = "sign-in link"


def make_link_code(db: Database, caller: Caller, name: str, now: int) -> api.SignInCode:
    """Return a code that opens one session for another user, who needs no token for it.

    The session belongs to a token that is made for it and whose secret nobody learns: it is listed and revoked as
    others are. ``not-found`` for an unknown user, ``conflict`` for a service account.
    """
    with db.read() as tx:
        user = users.by_name(tx, name)
    if user.project is not None:
        raise ProblemError(
            "conflict",
            TranslatableText(
                "link-service-account",
                "{name} is a service account, which signs in nowhere: make a token for it.",
                name=name,
            ),
        )
    scope: api.Scope = "admin" if user.admin else "submit"
    request = api.TokenRequest(name=LINK_NAME, scopes=[scope], user=name, expires_in=SESSION_S)
    made = tokens.create_token(db, caller, request, now)
    code = sign_in_codes.make(db, user.id, made.id, now, sign_in_codes.LINK_S)
    return api.SignInCode(code=code, expires_at=moment(now + sign_in_codes.LINK_S * 1_000_000))


def open_session(db: Database, token_id: str, now: int) -> tuple[api.User, api.NewToken]:
    """Open a session with the rights of a token; return its user and its own token. Old sessions are removed.

    ``unauthorized`` if the token is not valid any more, ``forbidden`` for a node's.
    """
    with db.write() as tx:
        session = _begin(tx, token_id, now)
        audit.record_user(tx, users.by_name(tx, session.user).id, "session.open", session.id, now)
        return users.by_name(tx, session.user), session


def _begin(tx: Connection, token_id: str, now: int) -> api.NewToken:
    tx.execute(delete(Token).where(Token.parent_id.is_not(None), Token.expires_us < now))
    # A session's own session belongs to the same token, whose end either waits for this one or is seen here.
    opener = select(func.coalesce(Token.parent_id, Token.id)).where(Token.id == token_id).scalar_subquery()
    tx.execute(select(Token.id).where(Token.id == opener).with_for_update(read=True, key_share=True))
    token = TokenRecord.first(tx.execute(select(Token.__table__).where(Token.id == token_id)))
    if token is None or token.revoked_us is not None or (token.expires_us is not None and token.expires_us <= now):
        raise ProblemError(
            "unauthorized", TranslatableText("proof-ended", "This token or code no longer counts: ask for a new one.")
        )
    if token.node is not None:
        raise ProblemError(
            "forbidden", TranslatableText("node-token-session", "A node's token opens no session: use a person's.")
        )
    if tx.scalar(select(User.project).where(User.id == token.user_id)) is not None:
        raise ProblemError(
            "forbidden",
            TranslatableText("service-account-session", "A service account opens no session: use a person's token."),
        )
    expires_us = min(now + SESSION_S * 1_000_000, token.expires_us or 2**62)
    parent = token.parent_id or token.id
    return tokens.issue(tx, token.user_id, NAME, token.scopes, now, expires_us=expires_us, parent_id=parent)


def begin_for_user(tx: Connection, user_id: str, scope: api.Scope, now: int) -> api.NewToken:
    """Begin a session that no token has opened: its own is its parent, so that it ends as one."""
    made = tokens.issue(tx, user_id, NAME, [scope], now, expires_us=now + SESSION_S * 1_000_000)
    tx.execute(update(Token).where(Token.id == made.id).values(parent_id=made.id))
    return made


def close_session(db: Database, cache: Tokens, caller: Caller, now: int) -> None:
    """Revoke the caller's session; a bearer token is not a session and stays."""
    with db.write() as tx:
        if tx.scalar(select(Token.parent_id).where(Token.id == caller.token_id)) is not None:
            tokens.end(tx, caller, caller.token_id, now)
    cache.forget()
