"""Sign-ins by OpenID Connect under way: any service on the database ends what another has begun."""

import secrets
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select

from service.db import single_use
from service.db.engine import Database
from service.db.models import OidcSignIn
from service.identity.callers import hash_secret
from service.identity.sign_in_limits import source_of

#: Seconds that somebody may take at the provider.
ATTEMPT_S: Final = 600
#: Sign-ins under way; a further one takes the place of the oldest of the address that has begun most.
MAX_ATTEMPTS: Final = 1000


@dataclass(frozen=True, slots=True)
class OidcAttempt:
    """A sign-in under way; `state` is known to the browser that began it."""

    state: str
    nonce: str
    verifier: str


def new() -> OidcAttempt:
    """Return one that nobody can guess; it counts once it is kept."""
    return OidcAttempt(*(secrets.token_urlsafe(32) for _ in range(3)))


def keep(db: Database, attempt: OidcAttempt, address: str, now: int) -> None:
    """Keep one of an address. It may void the oldest of the address that has most, so that a stranger who begins many
    voids no other's.
    """
    row = {
        "state_sha256": hash_secret(attempt.state),
        "nonce": attempt.nonce,
        "verifier": attempt.verifier,
        "source": source_of(address),
        "expires_us": now + ATTEMPT_S * 1_000_000,
    }
    with db.write() as tx:
        _evict_oldest(tx, now)
        tx.execute(insert(OidcSignIn).values(row))


def _evict_oldest(tx: Connection, now: int) -> None:
    tx.execute(delete(OidcSignIn).where(OidcSignIn.expires_us <= now))
    over = (tx.scalar(select(func.count()).select_from(OidcSignIn)) or 0) - MAX_ATTEMPTS + 1
    if over <= 0:
        return
    by_source = select(OidcSignIn.source).group_by(OidcSignIn.source)
    most = tx.scalar(by_source.order_by(func.count().desc(), OidcSignIn.source).limit(1))
    own = select(OidcSignIn.state_sha256).where(OidcSignIn.source == most)
    oldest = tx.scalars(own.order_by(OidcSignIn.expires_us, OidcSignIn.state_sha256).limit(over)).all()
    tx.execute(delete(OidcSignIn).where(OidcSignIn.state_sha256.in_(oldest)))


def take(db: Database, state: str, now: int) -> OidcAttempt | None:
    """Return the one of a state, which counts once: of several who ask at the same time, one gets it."""
    mine = OidcSignIn.state_sha256 == hash_secret(state), OidcSignIn.expires_us > now
    found = single_use.take(db, OidcSignIn, *mine, returning=(OidcSignIn.nonce, OidcSignIn.verifier))
    return None if found is None else OidcAttempt(state, found.nonce, found.verifier)
