from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from service.db.engine import Database
from service.db.models import OidcSignIn
from service.identity import oidc_attempts
from service.identity.callers import hash_secret
from service.identity.oidc_attempts import ATTEMPT_S, OidcAttempt

NOW = 1_000_000_000
END = NOW + ATTEMPT_S * 1_000_000


def begin(db: Database, address: str = "", now: int = NOW) -> OidcAttempt:
    attempt = oidc_attempts.new()
    oidc_attempts.keep(db, attempt, address, now)
    return attempt


def test_an_attempt_counts_once_and_until_its_end(db: Database) -> None:
    first, second = begin(db), begin(db)
    assert len({first.state, first.nonce, first.verifier, second.state, second.nonce, second.verifier}) == 6
    with db.read() as tx:
        assert set(tx.scalars(select(OidcSignIn.state_sha256))) == {hash_secret(each.state) for each in (first, second)}
    assert oidc_attempts.take(db, first.state, END - 1) == first
    assert oidc_attempts.take(db, first.state, END - 1) is None
    assert oidc_attempts.take(db, second.state, END) is None
    commits = []
    db.on_commit(commits.append)
    assert oidc_attempts.take(db, "guess", NOW) is None
    assert commits == [], "a guess writes nothing"
    third = begin(db, now=END)
    with db.read() as tx:
        assert list(tx.scalars(select(OidcSignIn.state_sha256))) == [hash_secret(third.state)]


def test_of_many_that_end_one_at_once_one_gets_it(db: Database, database_url: str) -> None:
    other = Database(database_url)  # as another service on the same database has it
    try:
        attempt = begin(db)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda each: oidc_attempts.take(each, attempt.state, NOW), [db, other] * 4))
    finally:
        other.dispose()
    assert [each for each in found if each is not None] == [attempt]


def test_who_begins_many_sign_ins_voids_their_own(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc_attempts, "MAX_ATTEMPTS", 10)
    ada, bob = begin(db, "192.0.2.1"), begin(db, "2001:db8::1")
    flood = [begin(db, f"2001:db8:0:7::{number:x}", NOW + number) for number in range(20)]
    left = [oidc_attempts.take(db, each.state, NOW + 20) for each in (ada, bob, *flood)]
    assert left == [ada, bob, *[None] * 12, *flood[12:]]
