"""The moments of an attempt's start, and when its job's submission was received."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0023"
down_revision: str | None = "0022"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("received_us", sa.BigInteger(), nullable=True))
    op.add_column("attempts", sa.Column("start", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("attempts", "start")
    op.drop_column("jobs", "received_us")
