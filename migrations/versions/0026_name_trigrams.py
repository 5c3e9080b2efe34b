"""Trigrams of the names of jobs, by which a part of a name is found.

SQLite has them in an FTS5 table that triggers hold true to `jobs`, PostgreSQL in a GIN index over a function of ours,
which needs no extension. Neither is in the models: a migration that makes the table `jobs` anew makes the
triggers anew.
"""

from collections.abc import Sequence

from alembic import op
from sqlalchemy.exc import DBAPIError

revision: str = "0026"
down_revision: str | None = "0025"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_TABLE = """
CREATE VIRTUAL TABLE job_names
USING fts5(name, content='jobs', content_rowid='number', tokenize='trigram', detail='none', columnsize=0)
"""
_REMOVE = "INSERT INTO job_names (job_names, rowid, name) VALUES ('delete', old.number, old.name)"
_ADD = "INSERT INTO job_names (rowid, name) VALUES (new.number, new.name)"
_TRIGGERS = {
    "job_names_added": f"AFTER INSERT ON jobs BEGIN {_ADD}; END",
    "job_names_removed": f"AFTER DELETE ON jobs BEGIN {_REMOVE}; END",
    "job_names_changed": (
        "AFTER UPDATE OF number, name ON jobs WHEN old.number <> new.number OR old.name <> new.name "
        f"BEGIN {_REMOVE}; {_ADD}; END"
    ),
}
_FUNCTION = """
CREATE FUNCTION name_trigrams(name text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(array_agg(DISTINCT substr(lower(name), place, 3)), '{}')
    FROM generate_series(1, length(lower(name)) - 2) AS place
$$
"""
#: Without the list of what is yet to be put in order, which every search would read.
_INDEX = "CREATE INDEX ix_jobs_name_trigrams ON jobs USING gin (name_trigrams(name)) WITH (fastupdate = off)"


class OldSQLiteError(RuntimeError):
    """Python's SQLite is older than 3.34 or lacks FTS5: take another Python, or PostgreSQL (TORCHYARD_DATABASE_URL)."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute(_FUNCTION)
        op.execute(_INDEX)
        # A beginning of an id is looked for by its bytes, whatever the language of the database.
        op.create_index("ix_jobs_id_bytes", "jobs", ["id"], postgresql_ops={"id": "text_pattern_ops"})
        return
    try:
        op.execute(_TABLE)
    except DBAPIError as error:
        raise OldSQLiteError from error
    op.execute("INSERT INTO job_names (job_names) VALUES ('rebuild')")
    for name, action in _TRIGGERS.items():
        op.execute(f"CREATE TRIGGER {name} {action}")


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.drop_index("ix_jobs_id_bytes", "jobs")
        op.drop_index("ix_jobs_name_trigrams", "jobs")
        op.execute("DROP FUNCTION name_trigrams(text)")
        return
    for name in _TRIGGERS:
        op.execute(f"DROP TRIGGER {name}")
    op.drop_table("job_names")
