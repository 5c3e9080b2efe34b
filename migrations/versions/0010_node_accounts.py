"""The UNIX users whose jobs a node can run."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("accounts", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("nodes", "accounts")
