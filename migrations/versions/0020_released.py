"""Allocations by when they were released."""

from collections.abc import Sequence

from alembic import op

revision: str = "0020"
down_revision: str | None = "0019"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_index("ix_allocations_released_us", "allocations", ["released_us"])


def downgrade() -> None:
    op.drop_index("ix_allocations_released_us", "allocations")
