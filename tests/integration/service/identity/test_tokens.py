"""Tokens that end at one service while another uses them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import select

from service.db.engine import Database
from service.db.models import Token
from service.errors import ProblemError
from service.identity import sessions, tokens, users
from service.identity.callers import Caller, Tokens
from tests.support.locks import is_waiting
from tests.support.wait import until
from torchyard import api
from torchyard.api.sharing import UserChanges

NOW = 1_000_000_000


@pytest.fixture
def cache(db: Database) -> Tokens:
    return Tokens(db, lambda: NOW, lambda: 0.0, "everyone")


@pytest.fixture
def ada(db: Database) -> Caller:
    with db.write() as tx:
        user = users.add(tx, "ada", "member", NOW)
        token = tokens.issue(tx, user.id, "laptop", ["submit"], NOW)
    return Caller(user_id=user.id, name="ada", admin=False, scopes=frozenset({"submit"}), node=None, token_id=token.id)


def valid(db: Database) -> list[str]:
    with db.read() as tx:
        return list(tx.scalars(select(Token.name).where(Token.revoked_us.is_(None))))


@pytest.mark.parametrize("of_session", [False, True])
def test_a_session_that_is_opened_while_its_token_ends_ends_with_it(
    db: Database, cache: Tokens, ada: Caller, *, of_session: bool
) -> None:
    opener = sessions.open_session(db, ada.token_id, NOW)[1].id if of_session else ada.token_id
    with ThreadPoolExecutor(1) as elsewhere:
        with db.write() as tx:
            sessions._begin(tx, opener, NOW)
            ending = elsewhere.submit(tokens.revoke, db, cache, ada, ada.token_id, NOW)
            until(lambda: is_waiting(db, ending), what="the other transaction")
        ending.result(60)
    assert valid(db) == []


@pytest.mark.parametrize("of_session", [False, True])
def test_no_session_is_opened_by_a_token_that_has_just_ended(db: Database, ada: Caller, *, of_session: bool) -> None:
    opener = sessions.open_session(db, ada.token_id, NOW)[1].id if of_session else ada.token_id
    with ThreadPoolExecutor(1) as elsewhere:
        with db.write() as tx:
            tokens.end(tx, ada, ada.token_id, NOW)
            opening = elsewhere.submit(sessions.open_session, db, opener, NOW)
            until(lambda: is_waiting(db, opening), what="the other transaction")
        error = opening.exception(60)
    assert isinstance(error, ProblemError)
    assert error.kind == "unauthorized"
    assert valid(db) == []


def test_no_token_is_made_for_a_user_who_is_just_deactivated(db: Database, ada: Caller) -> None:
    with ThreadPoolExecutor(1) as elsewhere:
        with db.write() as tx:
            root = users.add(tx, "root", "administrator", NOW)
            admin = replace(ada, user_id=root.id, name="root", admin=True)
            users._change_user(tx, admin, "ada", UserChanges(active=False), NOW)
            asked = api.TokenRequest(name="late", scopes=["submit"])
            making = elsewhere.submit(tokens.create_token, db, ada, asked, NOW)
            until(lambda: is_waiting(db, making), what="the other transaction")
        error = making.exception(60)
    assert isinstance(error, ProblemError)
    assert error.kind == "invalid-request"
    assert valid(db) == []


def test_a_token_that_is_replaced_twice_at_a_time_has_one_successor(db: Database, cache: Tokens, ada: Caller) -> None:
    with ThreadPoolExecutor(1) as elsewhere:
        with db.write() as tx:
            tokens.end(tx, ada, ada.token_id, NOW)
            rotating = elsewhere.submit(tokens.rotate, db, cache, ada, ada.token_id, api.TokenRotation(), NOW)
            until(lambda: is_waiting(db, rotating), what="the other transaction")
        error = rotating.exception(60)
    assert isinstance(error, ProblemError)
    assert error.kind == "not-found"
    assert valid(db) == []
