"""An index of what came to nothing by whose it was: the digest of a week adds it up, and names the worst jobs."""

from collections.abc import Sequence

from alembic import op

revision: str = "0043"
down_revision: str | None = "0042"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_index("ix_wasted_usage_user_id", "wasted_usage", ["user_id", "kind", "day", "number", "gpu_us"])


def downgrade() -> None:
    op.drop_index("ix_wasted_usage_user_id", "wasted_usage")
