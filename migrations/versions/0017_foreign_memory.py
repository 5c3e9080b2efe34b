"""Memory of GPUs that processes from outside of the queue hold."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0017"
down_revision: str | None = "0016"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("devices", sa.Column("foreign_memory", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("devices", "foreign_memory")
