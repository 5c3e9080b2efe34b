"""What an administrator says of a drain; drains that there are say nothing, as before."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0024"
down_revision: str | None = "0023"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("drain_message", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("nodes", "drain_message")
