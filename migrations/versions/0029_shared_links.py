"""Public links to jobs: which of them count, and until when."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0029"
down_revision: str | None = "0028"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("link_serial", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("jobs", sa.Column("link_expires_us", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "link_expires_us")
    op.drop_column("jobs", "link_serial")
