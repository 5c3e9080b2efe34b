"""Sessions of the dashboard, each with a token of its own."""

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, update

from service.db.engine import Database
from service.db.models import Token, User
from service.db.records.identity import TokenRecord
from service.errors import ProblemError
from service.identity import audit, tokens, users
from service.identity.callers import Caller, Tokens, hash_secret
from service.infra.times import moment
from torchyard import api

SESSION_S = 30 * 86_400
CODE_S = 300
#: Seconds for which a link that an administrator makes for somebody else counts: it travels by mail.
LINK_S = 86_400
#: Codes of one user that wait at a time: a further one takes the place of the oldest, so that nobody can use up what
#: others need, nor lock themselves out.
MAX_CODES = 10
NAME = "dashboard session"
LINK_NAME = "sign-in link"


@dataclass(frozen=True, slots=True)
class _Code:
    """The token that a waiting code stands for."""

    user_id: str
    token_id: str
    until: float


class Codes:
    """One-time codes, in memory: a restart of the service voids them."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._codes: dict[str, _Code] = {}
        self._lock = threading.Lock()

    def make(self, user_id: str, token_id: str, valid_s: int = CODE_S) -> str:
        """Return a code that opens one session for the token's user; it may void the user's oldest.

        It has 192 bits, so that nobody guesses one however often they try: right ones are never slowed.
        """
        code, now = secrets.token_urlsafe(24), self._monotonic()
        with self._lock:
            self._codes = {known: entry for known, entry in self._codes.items() if entry.until > now}
            own = [known for known, entry in self._codes.items() if entry.user_id == user_id]
            for oldest in own[: max(0, len(own) - MAX_CODES + 1)]:
                del self._codes[oldest]
            self._codes[hash_secret(code)] = _Code(user_id, token_id, now + valid_s)
        return code

    def take(self, code: str) -> str | None:
        """Return the token behind a code; the code is gone then.

        Codes are found by their hash, so the time that it takes tells nothing of how near a guess was.
        """
        with self._lock:
            entry = self._codes.pop(hash_secret(code), None)
        return entry.token_id if entry is not None and entry.until > self._monotonic() else None


def make_link_code(db: Database, codes: Codes, caller: Caller, name: str, now: int) -> api.SignInCode:
    """Return a code that opens one session for another user, who needs no token for it.

    The session belongs to a token that is made for it and whose secret nobody learns: it is listed and revoked as
    others are. ``not-found`` for an unknown user, ``conflict`` for a service account.
    """
    with db.read() as tx:
        user = users.by_name(tx, name)
    if user.project is not None:
        raise ProblemError("conflict", f"{name} is a service account, which signs in nowhere: make a token for it.")
    scope: api.Scope = "admin" if user.admin else "submit"
    request = api.TokenRequest(name=LINK_NAME, scopes=[scope], user=name, expires_in=SESSION_S)
    made = tokens.create_token(db, caller, request, now)
    code = codes.make(user.id, made.id, LINK_S)
    return api.SignInCode(code=code, expires_at=moment(now + LINK_S * 1_000_000))


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
    token = TokenRecord.first(tx.execute(select(Token.__table__).where(Token.id == token_id)))
    if token is None or token.revoked_us is not None or (token.expires_us is not None and token.expires_us <= now):
        raise ProblemError("unauthorized", "This token or code no longer counts: ask for a new one.")
    if token.node is not None:
        raise ProblemError("forbidden", "A node's token opens no session: use a person's.")
    if tx.scalar(select(User.project).where(User.id == token.user_id)) is not None:
        raise ProblemError("forbidden", "A service account opens no session: use a person's token.")
    expires_us = min(now + SESSION_S * 1_000_000, token.expires_us or 2**62)
    parent = token.parent_id or token.id  # a session's own session belongs to the same token
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
