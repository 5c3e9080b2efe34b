"""Sums of what users' jobs take in the artifact store, by project."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0036"
down_revision: str | None = "0035"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_FILL = """
INSERT INTO stored_bytes (user_id, project, size)
SELECT jobs.user_id, jobs.project, SUM(files.size)
FROM (
    SELECT job_id, size FROM checkpoints WHERE state = 'stored'
    UNION ALL SELECT job_id, size FROM outputs WHERE state = 'stored'
    UNION ALL
    SELECT attempts.job_id, log_streams.size FROM log_streams JOIN attempts ON attempts.id = log_streams.attempt_id
) AS files JOIN jobs ON jobs.id = files.job_id
GROUP BY jobs.user_id, jobs.project
"""


def upgrade() -> None:
    op.create_table(
        "stored_bytes",
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name="fk_stored_bytes_project"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_stored_bytes_user_id"),
        sa.PrimaryKeyConstraint("user_id", "project", name="pk_stored_bytes"),
    )
    op.create_index("ix_stored_bytes_project", "stored_bytes", ["project"])
    op.execute(_FILL)


def downgrade() -> None:
    op.drop_table("stored_bytes")
