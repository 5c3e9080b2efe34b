"""GPU time of each day summed up by user, and by project: reports of a year read no row of each pair of both."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0042"
down_revision: str | None = "0041"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_FILL = """
INSERT INTO owner_usage (owner_kind, day, owner, kind, gpu_us, stoppable_us)
SELECT '{kind}', day, {column}, kind, SUM(gpu_us), SUM(stoppable_us) FROM usage GROUP BY day, {column}, kind
"""


def upgrade() -> None:
    op.create_table(
        "owner_usage",
        sa.Column("owner_kind", sa.String(), nullable=False),
        sa.Column("day", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("gpu_us", sa.BigInteger(), nullable=False),
        sa.Column("stoppable_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner_kind", "day", "owner", "kind", name="pk_owner_usage"),
        sqlite_with_rowid=False,
    )
    for kind, column in (("user", "user_id"), ("project", "project")):
        op.execute(_FILL.format(kind=kind, column=column))


def downgrade() -> None:
    op.drop_table("owner_usage")
