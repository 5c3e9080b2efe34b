"""Where entries of the audit came from, and refused requests among them."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0018"
down_revision: str | None = "0017"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("audit", sa.Column("address", sa.String(), nullable=True))
    op.add_column("audit", sa.Column("status", sa.BigInteger(), nullable=True))
    op.add_column("audit", sa.Column("times", sa.BigInteger(), server_default=sa.text("1"), nullable=False))
    op.create_index("ix_audit_at_us", "audit", ["at_us"])


def downgrade() -> None:
    op.execute(sa.text("DELETE FROM audit WHERE status IS NOT NULL"))
    op.drop_index("ix_audit_at_us", table_name="audit")
    op.drop_column("audit", "times")
    op.drop_column("audit", "status")
    op.drop_column("audit", "address")
