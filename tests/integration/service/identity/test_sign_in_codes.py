from base64 import urlsafe_b64decode
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import delete, func, select

from service.db.engine import Database
from service.db.models import Token, WaitingCode
from service.identity import sign_in_codes, tokens, users
from service.identity.callers import hash_secret
from service.identity.sign_in_codes import CODE_S, LINK_S, MAX_CODES

NOW = 1_000_000_000
SECOND = 1_000_000


@pytest.fixture
def ada(db: Database) -> tuple[str, str]:
    """A user, and her token."""
    return person(db, "ada")


def person(db: Database, name: str) -> tuple[str, str]:
    with db.write() as tx:
        user = users.add(tx, name, "member", NOW)
        return user.id, tokens.issue(tx, user.id, "t", ["submit"], NOW).id


def stored(db: Database) -> list[str]:
    with db.read() as tx:
        return list(tx.scalars(select(WaitingCode.sha256)))


def test_a_code_counts_once_and_its_hash_alone_is_stored(db: Database, ada: tuple[str, str]) -> None:
    code = sign_in_codes.make(db, *ada, NOW)
    assert len(urlsafe_b64decode(code)) == 24
    assert stored(db) == [hash_secret(code)]
    commits = []
    db.on_commit(commits.append)
    assert sign_in_codes.take(db, "other", NOW) is None
    assert commits == [], "a guess writes nothing"
    assert sign_in_codes.take(db, code, NOW) == ada[1]
    assert sign_in_codes.take(db, code, NOW) is None


def test_of_many_that_take_a_code_at_once_one_gets_it(db: Database, database_url: str, ada: tuple[str, str]) -> None:
    other = Database(database_url)  # as another service on the same database has it
    try:
        code = sign_in_codes.make(db, *ada, NOW)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda each: sign_in_codes.take(each, code, NOW), [db, other] * 4))
    finally:
        other.dispose()
    assert sorted(filter(None, found)) == [ada[1]]


@pytest.mark.parametrize("valid_s", [CODE_S, LINK_S])
def test_a_code_counts_for_its_time(db: Database, ada: tuple[str, str], valid_s: int) -> None:
    early, late = (sign_in_codes.make(db, *ada, NOW, valid_s) for _ in range(2))
    assert sign_in_codes.take(db, early, NOW + valid_s * SECOND - 1) == ada[1]
    assert sign_in_codes.take(db, late, NOW + valid_s * SECOND) is None
    code = sign_in_codes.make(db, *ada, NOW + valid_s * SECOND)
    assert stored(db) == [hash_secret(code)], "what is over goes with the next"


def test_a_flood_of_codes_voids_the_flooders_oldest_and_nobody_elses(db: Database, ada: tuple[str, str]) -> None:
    others, eve = sign_in_codes.make(db, *ada, NOW), person(db, "eve")
    flood = [sign_in_codes.make(db, *eve, NOW + number) for number in range(3 * MAX_CODES)]
    assert sign_in_codes.take(db, others, NOW) == ada[1]
    taken = [sign_in_codes.take(db, code, NOW) for code in flood[-MAX_CODES - 1 :]]
    assert taken == [None, *[eve[1]] * MAX_CODES]


def test_a_code_goes_with_its_token(db: Database, ada: tuple[str, str]) -> None:
    code = sign_in_codes.make(db, *ada, NOW)
    with db.write() as tx:
        tx.execute(delete(Token).where(Token.id == ada[1]))
        assert tx.scalar(select(func.count()).select_from(WaitingCode)) == 0
    assert sign_in_codes.take(db, code, NOW) is None
