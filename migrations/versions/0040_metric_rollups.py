"""Rollups of metrics, which the service makes of long series as points arrive, and after this for those that are there.

How many points a series has is not counted here: the distance of its first and last line says how many at most.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0040"
down_revision: str | None = "0039"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_LONG = sa.text("unrolled >= 4096")
_FILL = """
UPDATE metric_series
SET unrolled = (SELECT MAX(seq) FROM metric_points WHERE series_id = metric_series.id)
    - (SELECT MIN(seq) FROM metric_points WHERE series_id = metric_series.id)
WHERE (SELECT MIN(seq) FROM metric_points WHERE series_id = metric_series.id) >= 0
    AND (SELECT MAX(seq) FROM metric_points WHERE series_id = metric_series.id)
    >= (SELECT MIN(seq) FROM metric_points WHERE series_id = metric_series.id) + 4096
"""


def upgrade() -> None:
    op.create_table(
        "metric_rollups",
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("level", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("first_seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("series_id", "level", "first_seq", name="pk_metric_rollups"),
        sqlite_with_rowid=False,
    )
    op.add_column(
        "metric_series", sa.Column("rolled_seq", sa.BigInteger(), server_default=sa.text("-1"), nullable=False)
    )
    op.add_column("metric_series", sa.Column("unrolled", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.execute(_FILL)
    op.create_index(
        "ix_metric_series_unrolled", "metric_series", ["unrolled"], sqlite_where=_LONG, postgresql_where=_LONG
    )


def downgrade() -> None:
    op.drop_index("ix_metric_series_unrolled", table_name="metric_series")
    op.drop_column("metric_series", "unrolled")
    op.drop_column("metric_series", "rolled_seq")
    op.drop_table("metric_rollups")
