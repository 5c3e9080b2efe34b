"""When the bytes of logs arrived."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("log_streams", sa.Column("timed_us", sa.BigInteger(), nullable=True))
    op.create_table(
        "log_times",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_log_times_attempt_id")),
        sa.PrimaryKeyConstraint("attempt_id", "rank", "offset", name=op.f("pk_log_times")),
    )


def downgrade() -> None:
    op.drop_table("log_times")
    op.drop_column("log_streams", "timed_us")
