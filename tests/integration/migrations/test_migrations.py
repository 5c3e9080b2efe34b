"""The migrations make exactly what the models say, on both databases, and can be taken back."""

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from service.bootstrap import NewerSchemaError, migrate
from service.db.models import Base

ROOT = Path(__file__).parents[3]


def tables(url: str) -> set[str]:
    engine = create_engine(url)
    names = set(inspect(engine).get_table_names())
    engine.dispose()
    return names


@pytest.fixture
def database_url(empty_database_url: str) -> str:
    """These tests make the tables themselves."""
    return empty_database_url


def test_models_and_migrated_schema_are_the_same(database_url: str) -> None:
    migrate(database_url)
    engine = create_engine(database_url)
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), Base.metadata)
    engine.dispose()
    assert differences == []


def test_checks_partial_indexes_and_keys_are_the_same(tmp_path: Path) -> None:
    """What autogenerate does not compare: the whole text of every table, which SQLite keeps."""
    database_url = f"sqlite:///{tmp_path / 'x.db'}"
    migrate(database_url)
    modelled = create_engine("sqlite://")
    Base.metadata.create_all(modelled)
    migrated = create_engine(database_url)
    query = text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name != 'alembic_version'")

    def parts(sql: str) -> set[str]:
        """Columns and constraints, in whatever order: a column that came later stands behind the constraints."""
        head, _, rest = sql.partition("(")
        body, _, tail = rest.rpartition(")")
        split = [head, tail, *re.split(r",(?![^()]*\))", body)]
        return {re.sub(r"\s+", " ", part).strip() for part in split}

    found = []
    for engine in (modelled, migrated):
        with engine.connect() as connection:
            found.append({name: parts(sql) for name, sql in connection.execute(query)})
        engine.dispose()
    assert found[0] == found[1]


def test_up_and_down_and_up_again(database_url: str) -> None:
    migrate(database_url)
    assert set(Base.metadata.tables) <= tables(database_url)
    migrate(database_url, "base")
    assert tables(database_url) <= {"alembic_version"}
    migrate(database_url)
    migrate(database_url)
    assert set(Base.metadata.tables) <= tables(database_url)


def test_two_services_that_start_together_migrate_once(database_url: str) -> None:
    errors: list[BaseException] = []

    def start() -> None:
        try:
            migrate(database_url)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(Base.metadata.tables) <= tables(database_url)


def test_a_newer_schema_is_refused_with_the_mend(database_url: str) -> None:
    migrate(database_url)
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(NewerSchemaError, match="install that version"):
        migrate(database_url)


def test_a_plain_url_works_for_people_who_write_migrations(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    ini = tmp_path / "alembic.ini"
    ini.write_text((ROOT / "alembic.ini").read_text().replace("sqlite:///torchyard.db", url))
    command = [sys.executable, "-m", "alembic", "-c", str(ini), "upgrade", "head"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert set(Base.metadata.tables) <= tables(url)
    sql = subprocess.run([*command, "--sql"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "CREATE TABLE jobs" in sql
