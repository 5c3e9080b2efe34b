import stat
from pathlib import Path

from sqlalchemy import delete, select

from service.bootstrap import prepare
from service.db.engine import Database
from service.db.models import Installation, Project, Token, User
from torchyard import home


def test_the_first_start_makes_identity_people_and_tokens(db: Database, yard_home: Path) -> None:
    installation = prepare(db)
    with db.read() as tx:
        facts = {row.key: row.value for row in tx.execute(select(Installation.key, Installation.value))}
        assert facts["id"] == installation
        assert len(facts["secret_key"]) == 64
        assert tx.scalars(select(Project.name)).all() == ["default"]
        assert tx.scalars(select(User.role)).all() == ["administrator"]
        scopes = {tuple(row.scopes): row.node for row in tx.execute(select(Token.scopes, Token.node))}
    assert scopes == {("admin",): None, ("node",): home.node_name()}
    for file in (home.admin_token_file(), home.node_token_file()):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_second_start_keeps_everything(db: Database, yard_home: Path) -> None:
    first, token = prepare(db), home.admin_token_file().read_text()
    assert prepare(db) == first
    assert home.admin_token_file().read_text() == token
    with db.read() as tx:
        assert len(tx.execute(select(Token.id)).all()) == 2


def test_a_token_file_of_another_database_is_written_anew(db: Database, yard_home: Path) -> None:
    prepare(db)
    token = home.admin_token_file().read_text()
    with db.write() as tx:
        tx.execute(delete(Token))
    prepare(db)
    assert home.admin_token_file().read_text() != token
