"""Lists of jobs by name and by duration are read in order, and not sorted.

On SQLite a later migration that makes the table of jobs anew (`batch_alter_table`) must make these indexes again:
SQLAlchemy reads no indexes on expressions from there.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0039"
down_revision: str | None = "0038"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_RAN_US = "(CASE WHEN started_us IS NULL THEN -1 ELSE ended_us - started_us END)"


def upgrade() -> None:
    op.create_index("ix_jobs_lower_name", "jobs", [sa.text("lower(name)"), sa.text("number DESC")])
    op.create_index("ix_jobs_ran_us", "jobs", [sa.text(_RAN_US), sa.text("number DESC")])


def downgrade() -> None:
    op.drop_index("ix_jobs_ran_us", table_name="jobs")
    op.drop_index("ix_jobs_lower_name", table_name="jobs")
