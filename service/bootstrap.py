"""Preparation of a service: its identity, an administrator and two tokens."""

import getpass
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, insert, select

from service.db.engine import Database
from service.db.models import Installation, Project, Token, User
from service.identity.callers import hash_secret, new_secret
from torchyard import home
from torchyard.ids import new_id, now_us

#: The fact that holds the installation's secret.
_SECRET = "secret_key"  # noqa: S105


def prepare(db: Database) -> str:
    """Make identity, administrator, project and token files, as far as they lack; return the installation's id.

    A token file that is there is believed only if its token still counts; otherwise it is written anew.
    """
    with db.write() as tx:
        installation = _fact(tx, "id", lambda: new_id("yard"))
        _fact(tx, _SECRET, secrets.token_hex)
        _project(tx)
        admin = _administrator(tx)
        _token_file(tx, admin, home.admin_token_file(), "administrator", ["admin"])
        _token_file(tx, admin, home.node_token_file(), "embedded worker", ["node"], home.node_name())
    return installation


def secret_key(db: Database) -> str:
    """Return the installation's secret, which `prepare` has made: passwords that nobody remembers follow from it."""
    with db.read() as tx:
        return str(tx.scalar(select(Installation.value).where(Installation.key == _SECRET)))


def _fact(tx: Connection, key: str, make: Callable[[], str]) -> str:
    found = tx.scalar(select(Installation.value).where(Installation.key == key))
    if found is None:
        found = make()
        tx.execute(insert(Installation).values(key=key, value=found))
    return found


def _project(tx: Connection) -> None:
    if tx.scalar(select(Project.name).limit(1)) is None:
        tx.execute(insert(Project).values(name="default", created_us=now_us()))


def _administrator(tx: Connection) -> str:
    query = select(User.id).where(User.role == "administrator", User.deactivated_us.is_(None))
    found = tx.scalar(query.order_by(User.created_us, User.id).limit(1))
    if found is not None:
        return found
    account = _account()
    user_id = new_id("user")
    tx.execute(
        insert(User).values(
            id=user_id, name=account or "admin", role="administrator", unix_user=account, created_us=now_us()
        )
    )
    return user_id


def _account() -> str | None:
    """The UNIX account that the service runs as; a container's number may have no name."""
    with suppress(OSError, KeyError):
        return getpass.getuser()
    return None


def _token_file(
    tx: Connection, user_id: str, path: Path, name: str, scopes: Sequence[str], node: str | None = None
) -> None:
    if _counts(tx, path):
        return
    secret = new_secret()
    tx.execute(
        insert(Token).values(
            id=new_id("tok"),
            user_id=user_id,
            name=name,
            sha256=hash_secret(secret),
            scopes=list(scopes),
            node=node,
            created_us=now_us(),
        )
    )
    home.write_private(path, secret + "\n")


def _counts(tx: Connection, path: Path) -> bool:
    try:
        secret = path.read_text().strip()
    except OSError:
        return False
    query = select(Token.id).where(Token.sha256 == hash_secret(secret), Token.revoked_us.is_(None))
    return tx.scalar(query) is not None
