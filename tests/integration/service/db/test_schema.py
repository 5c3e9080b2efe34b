import subprocess
import sys
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from service.db import schema
from service.db.models import Base

ROOT = Path(__file__).parents[4]

#: As the service starts; prints whether Alembic was imported, and how the second attempt ends.
START = """
import sys
from service.db import schema
with schema.migrating(sys.argv[1]):
    pass
print("alembic" in sys.modules)
try:
    schema.migrate(sys.argv[1])
except Exception as error:
    print(type(error).__name__)
print("alembic" in sys.modules)
"""


def start(url: str) -> list[str]:
    command = [sys.executable, "-c", START, url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.split()


def test_files_are_named_by_their_revisions() -> None:
    scripts = ScriptDirectory(str(ROOT / "migrations"))
    assert schema._revisions() == {each.revision for each in scripts.walk_revisions()}
    assert max(schema._revisions()) == scripts.get_current_head()
    assert schema.knows("0001")
    assert not schema.knows("9999")


def test_a_start_migrates_without_importing_alembic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new' / 'x.db'}"
    assert start(url) == ["False", "False"]
    engine = create_engine(url)
    assert set(Base.metadata.tables) <= {*inspect(engine).get_table_names()}
    engine.dispose()


@pytest.mark.parametrize("missing", [False, True], ids=["newest", "without revision"])
def test_what_fails_in_the_child_is_met_again(database_url: str, missing: bool) -> None:
    if missing:  # its tables are there already
        engine = create_engine(database_url)
        with engine.begin() as connection:
            connection.execute(text("DROP TABLE alembic_version"))
        engine.dispose()
    error = "OperationalError" if database_url.startswith("sqlite") else "ProgrammingError"
    assert start(database_url) == (["False", error, "True"] if missing else ["False", "False"])
