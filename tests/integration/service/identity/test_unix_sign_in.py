import pytest
from sqlalchemy import update

from service.db.engine import Database
from service.db.models import User
from service.errors import ProblemError
from service.identity import unix_sign_in, users
from service.identity.unix_sign_in import SignInRule, UnixAccount

NOW = 1_000_000_000


def deactivate(db: Database, name: str, at: int) -> None:
    """Add a user of the account ``lab`` who was deactivated at a moment."""
    with db.write() as tx:
        users.add(tx, name, "member", NOW, unix_user="lab")
        tx.execute(update(User).where(User.name == name).values(deactivated_us=at))


def refusal(db: Database) -> str:
    """What the account is told."""
    with pytest.raises(ProblemError) as told:
        unix_sign_in.sign_in(db, SignInRule(mode="create"), UnixAccount(1000, "lab"), NOW)
    return str(told.value.detail)


def test_of_deactivated_users_of_an_account_the_last_one_is_told_of(db: Database) -> None:
    for name, at in (("bob", NOW + 2), ("cy", NOW + 9), ("ada", NOW + 9), ("dan", NOW + 1)):
        deactivate(db, name, at)
    assert refusal(db) == "ada is deactivated: an administrator ends that."
    deactivate(db, "lab", NOW)
    assert refusal(db) == "lab is deactivated: an administrator ends that.", "the one of the account's name"
