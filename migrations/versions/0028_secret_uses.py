"""Which jobs were given a secret, and when."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0028"
down_revision: str | None = "0027"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "secret_uses",
        sa.Column("secret_id", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("used_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_secret_uses_job_id"),
        sa.ForeignKeyConstraint(["secret_id"], ["secrets.id"], name="fk_secret_uses_secret_id"),
        sa.PrimaryKeyConstraint("secret_id", "job_id", name="pk_secret_uses"),
    )


def downgrade() -> None:
    op.drop_table("secret_uses")
