"""Members of attempts on several nodes get ready, end and fall silent one by one."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_FACTS = ("prepared", "result")
_TIMES = ("ended_us", "failed_us", "unseen_us")


def upgrade() -> None:
    for name in _FACTS:
        op.add_column("members", sa.Column(name, sa.JSON(none_as_null=True), nullable=True))
    for name in _TIMES:
        op.add_column("members", sa.Column(name, sa.BigInteger(), nullable=True))


def downgrade() -> None:
    for name in (*reversed(_TIMES), *reversed(_FACTS)):
        op.drop_column("members", name)
