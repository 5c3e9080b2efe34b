"""Sign-ins of somebody who is not known yet, of which another comes at the same time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.db.engine import Database
from service.identity import oidc, unix_sign_in, users
from service.identity.unix_sign_in import SignInRule, UnixAccount
from tests.support.locks import is_waiting
from tests.support.wait import until
from torchyard import api

NOW = 1_000_000_000
PROVIDER = oidc.OidcClient(issuer="https://login.test", client_id="yard", client_secret="x", create=True)

SIGN_INS: dict[str, Callable[[Database], api.NewToken]] = {
    "unix": lambda db: unix_sign_in.sign_in(db, SignInRule(mode="create"), UnixAccount(1000, "ada"), NOW),
    "oidc": lambda db: oidc.open_session(db, PROVIDER, {"preferred_username": "ada"}, NOW),
}


@pytest.mark.parametrize("how", SIGN_INS)
def test_both_come_in(db: Database, how: str) -> None:
    with ThreadPoolExecutor(1) as elsewhere:
        with db.write() as tx:
            users.add(tx, "ada", "member", NOW)
            signing = elsewhere.submit(SIGN_INS[how], db)
            until(lambda: is_waiting(db, signing), what="the other transaction")
        assert signing.result(60).user == "ada"
