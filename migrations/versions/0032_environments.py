"""What was installed for attempts: each environment once, by its hash."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0032"
down_revision: str | None = "0031"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "environments",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_environments")),
    )
    op.add_column("attempts", sa.Column("environment", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("attempts", "environment")
    op.drop_table("environments")
