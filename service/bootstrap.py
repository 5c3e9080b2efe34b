"""Preparation of a service: the newest schema, its identity, an administrator and two tokens."""

import getpass
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, insert, select, text
from sqlalchemy.engine import make_url

from service.db.engine import WAIT_S, Database
from service.db.models import Installation, Project, Token, User
from service.identity.callers import hash_secret, new_secret
from torchyard import home
from torchyard.ids import new_id, now_us

#: PostgreSQL advisory lock under which one service at a time migrates.
_MIGRATION_LOCK = 0x79617264
#: The fact that holds the installation's secret.
_SECRET = "secret_key"  # noqa: S105


class NewerSchemaError(RuntimeError):
    """The database was written by a newer TorchYard: install that version, or restore the backup made before it."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def migrate(url: str, revision: str = "head") -> None:
    """Bring a database to a revision (``base`` removes everything); raise `NewerSchemaError`."""
    _make_folder(url)
    database = Database(url, pool_size=1)
    try:
        with database.engine.connect() as connection, _alone(connection):
            _run(connection, revision)
            connection.commit()
    finally:
        database.dispose()


def _make_folder(url: str) -> None:
    path = make_url(url).database
    if url.startswith("sqlite") and path and path != ":memory:":
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield
        return
    connection.execute(text("SET LOCAL lock_timeout = 0"))  # another service may take long to migrate
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
    connection.execute(text(f"SET LOCAL lock_timeout = {round(WAIT_S * 1000)}"))
    yield


def knows(revision: str) -> bool:
    """Return whether this code can read tables of a revision, once it has migrated them."""
    return revision in {script.revision for script in _scripts().walk_revisions()}


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(resources.files("migrations")).replace("%", "%%"))
    return config


def _run(connection: Connection, revision: str) -> None:
    newest = _scripts().get_current_head()
    if revision == "head" and MigrationContext.configure(connection).get_current_revision() == newest:
        return
    config = _config()
    config.attributes["connection"] = connection
    try:
        if revision == "base":
            command.downgrade(config, revision)
        else:
            command.upgrade(config, revision)
    except CommandError as error:
        if "Can't locate revision" in str(error):
            raise NewerSchemaError from error
        raise


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
