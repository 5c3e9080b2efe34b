"""What jobs' notes on their checkpoints are made of, for words in another language."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0045"
down_revision: str | None = "0044"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_COLUMNS = ("inexact_parts", "unsaved_parts")


def upgrade() -> None:
    for column in _COLUMNS:
        op.add_column("jobs", sa.Column(column, sa.JSON(), nullable=True))


def downgrade() -> None:
    for column in reversed(_COLUMNS):
        op.drop_column("jobs", column)
