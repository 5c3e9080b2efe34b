"""Indexes of the lists of jobs."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0015"
down_revision: str | None = "0014"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

INDEXES = {
    "ix_jobs_state_number": ["state", "number"],
    "ix_jobs_user_id_number": ["user_id", "number"],
    "ix_jobs_user_id_state": ["user_id", "state", "number"],
    "ix_jobs_project_number": ["project", "number"],
    "ix_jobs_project_state": ["project", "state", "number"],
    "ix_jobs_listed": ["number", "name", "state", "user_id", "project", "group_id"],
}


def upgrade() -> None:
    op.drop_index("ix_jobs_user_id_state", "jobs")
    for name, columns in INDEXES.items():
        op.create_index(name, "jobs", columns)
    op.add_column("tags", sa.Column("number", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.execute("UPDATE tags SET number = (SELECT number FROM jobs WHERE jobs.id = tags.job_id)")
    op.create_index("ix_tags_tag_number", "tags", ["tag", "number"])


def downgrade() -> None:
    op.drop_index("ix_tags_tag_number", "tags")
    op.drop_column("tags", "number")
    for name in INDEXES:
        op.drop_index(name, "jobs")
    op.create_index("ix_jobs_user_id_state", "jobs", ["user_id", "state"])
