"""Quotas of the bytes that jobs hold in the artifact store."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0021"
down_revision: str | None = "0020"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("accounts", sa.Column("max_storage", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("accounts", "max_storage")
