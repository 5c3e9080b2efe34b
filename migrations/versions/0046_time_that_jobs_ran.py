"""Lists of jobs by how long they ran: without the time in which they waited again.

On SQLite a later migration that makes the table of jobs anew (`batch_alter_table`) must make this index again:
SQLAlchemy reads no indexes on expressions from there.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0046"
down_revision: str | None = "0045"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_RAN_US = (
    "(CASE WHEN started_us IS NULL THEN -1 "
    "WHEN state IN ('queued', 'succeeded', 'failed', 'cancelled') THEN ran_us END)"
)
_BEFORE = "(CASE WHEN started_us IS NULL THEN -1 ELSE ended_us - started_us END)"


def upgrade() -> None:
    _index(_RAN_US)


def downgrade() -> None:
    _index(_BEFORE)


def _index(expression: str) -> None:
    op.drop_index("ix_jobs_ran_us", table_name="jobs")
    op.create_index("ix_jobs_ran_us", "jobs", [sa.text(expression), sa.text("number DESC")])
