"""Faults of GPUs that their drivers report, and those with which an administrator has returned one to use."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0014"
down_revision: str | None = "0013"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("devices", sa.Column("fault", sa.String(), nullable=True))
    op.add_column("devices", sa.Column("acknowledged", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("devices", "acknowledged")
    op.drop_column("devices", "fault")
