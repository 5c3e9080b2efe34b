"""Who may submit to a project; to those that there are everyone may, as before."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0022"
down_revision: str | None = "0021"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("projects", sa.Column("submitters", sa.String(), server_default="everyone", nullable=False))


def downgrade() -> None:
    op.drop_column("projects", "submitters")
