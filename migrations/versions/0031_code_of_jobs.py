"""The snapshot of code that each job is on, as a column of its own."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0031"
down_revision: str | None = "0030"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("code", sa.String(), nullable=True))
    is_postgresql = op.get_context().dialect.name == "postgresql"
    code = "spec ->> 'code'" if is_postgresql else "json_extract(spec, '$.code')"
    op.execute(f"UPDATE jobs SET code = {code}")  # noqa: S608 (no input)
    op.create_index("ix_jobs_user_id_code", "jobs", ["user_id", "code"])
    op.create_index("ix_jobs_project_code", "jobs", ["project", "code"])


def downgrade() -> None:
    op.drop_index("ix_jobs_project_code", "jobs")
    op.drop_index("ix_jobs_user_id_code", "jobs")
    op.drop_column("jobs", "code")
