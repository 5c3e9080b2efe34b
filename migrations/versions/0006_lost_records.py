"""Metric records that processes took and could not write."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("metric_streams", sa.Column("taken", sa.BigInteger(), nullable=True))
    op.add_column("metric_streams", sa.Column("lost", sa.BigInteger(), server_default=sa.text("0"), nullable=False))


def downgrade() -> None:
    op.drop_column("metric_streams", "lost")
    op.drop_column("metric_streams", "taken")
