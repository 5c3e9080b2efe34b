"""One-time codes that open a session: any service on the database takes what another has made."""

import secrets

from sqlalchemy import delete, insert, select

from service.db import single_use
from service.db.engine import Database
from service.db.models import WaitingCode
from service.identity.callers import hash_secret

CODE_S = 300
#: Seconds for which a link that an administrator makes for somebody else counts: it travels by mail.
LINK_S = 86_400
#: Codes of one user that wait at a time: a further one takes the place of the oldest, so that nobody can use up what
#: others need, nor lock themselves out.
MAX_CODES = 10


def make(db: Database, user_id: str, token_id: str, now: int, valid_s: int = CODE_S) -> str:
    """Return a code that opens one session with the rights of a token; it may void the oldest of its user.

    It has 192 bits, so that nobody guesses one however often they try: right ones are never slowed.
    """
    code = secrets.token_urlsafe(24)
    newest = select(WaitingCode.sha256).where(WaitingCode.user_id == user_id)
    newest = newest.order_by(WaitingCode.created_us.desc(), WaitingCode.sha256).limit(MAX_CODES - 1)
    row = {
        "sha256": hash_secret(code),
        "token_id": token_id,
        "user_id": user_id,
        "created_us": now,
        "expires_us": now + valid_s * 1_000_000,
    }
    with db.write() as tx:
        tx.execute(delete(WaitingCode).where(WaitingCode.expires_us <= now))
        kept = tx.scalars(newest).all()
        tx.execute(delete(WaitingCode).where(WaitingCode.user_id == user_id, WaitingCode.sha256.not_in(kept)))
        tx.execute(insert(WaitingCode).values(row))
    return code


def take(db: Database, code: str, now: int) -> str | None:
    """Return the token behind a code, which is gone then: of several who ask at once, one gets it.

    Codes are found by their hash, so the time that it takes tells nothing of how near a guess was.
    """
    mine = WaitingCode.sha256 == hash_secret(code), WaitingCode.expires_us > now
    found = single_use.take(db, WaitingCode, *mine, returning=(WaitingCode.token_id,))
    return None if found is None else str(found.token_id)
