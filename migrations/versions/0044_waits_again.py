"""An index of waiting jobs that have had an attempt: of a long queue they alone can have values of a metric."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0044"
down_revision: str | None = "0043"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_WAITS_AGAIN = sa.text("state = 'queued' AND attempt > 0")


def upgrade() -> None:
    columns, where = ["state", "attempt", "number"], _WAITS_AGAIN
    op.create_index("ix_jobs_waits_again", "jobs", columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    op.drop_index("ix_jobs_waits_again", "jobs")
