"""What nodes measure of held devices, and their own disk floors."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("disk_floor", sa.BigInteger(), nullable=True))
    op.add_column("nodes", sa.Column("held_us", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("nodes", "held_us")
    op.drop_column("nodes", "disk_floor")
