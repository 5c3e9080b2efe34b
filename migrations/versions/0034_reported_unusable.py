"""Why a node itself keeps jobs from a device, apart from the device's quarantine."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0034"
down_revision: str | None = "0033"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_FILL = """
UPDATE devices SET reported_unusable = unusable
WHERE unusable NOT LIKE 'in quarantine: %' AND unusable NOT LIKE 'failed under the last %'
"""


def upgrade() -> None:
    op.add_column("devices", sa.Column("reported_unusable", sa.String(), nullable=True))
    op.execute(_FILL)


def downgrade() -> None:
    op.drop_column("devices", "reported_unusable")
