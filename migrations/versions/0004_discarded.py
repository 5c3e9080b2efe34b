"""Jobs whose files were discarded."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("discarded_us", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "discarded_us")
