"""What a job's own part tells of its checkpoints."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("inexact", sa.String(), nullable=True))
    op.add_column("jobs", sa.Column("unsaved", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "unsaved")
    op.drop_column("jobs", "inexact")
