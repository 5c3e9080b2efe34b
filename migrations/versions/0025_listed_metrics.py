"""Index of the lists of jobs by a metric's newest value."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0025"
down_revision: str | None = "0024"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("metric_series", sa.Column("number", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.execute("UPDATE metric_series SET number = (SELECT number FROM jobs WHERE jobs.id = metric_series.job_id)")
    op.create_index("ix_metric_series_name_number", "metric_series", ["name", "number", "last_value"])


def downgrade() -> None:
    op.drop_index("ix_metric_series_name_number", "metric_series")
    op.drop_column("metric_series", "number")
