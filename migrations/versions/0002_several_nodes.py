"""Members of attempts on several nodes get ready, end and fall silent one by one, and each has its own files."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_FACTS = ("prepared", "result")
_FILES = ("checkpoint_files", "outputs")
_TIMES = ("ended_us", "failed_us", "unseen_us")


def upgrade() -> None:
    for name in _FACTS:
        op.add_column("members", sa.Column(name, sa.JSON(none_as_null=True), nullable=True))
    for name in _TIMES:
        op.add_column("members", sa.Column(name, sa.BigInteger(), nullable=True))
    for table in _FILES:
        op.add_column(table, sa.Column("node_rank", sa.BigInteger(), nullable=True))
    op.create_table(
        "checkpoint_parts",
        sa.Column("checkpoint_id", sa.String(), nullable=False),
        sa.Column("node_rank", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["checkpoint_id"], ["checkpoints.id"], name=op.f("fk_checkpoint_parts_checkpoint_id")),
        sa.PrimaryKeyConstraint("checkpoint_id", "node_rank", name=op.f("pk_checkpoint_parts")),
    )


def downgrade() -> None:
    op.drop_table("checkpoint_parts")
    for table in reversed(_FILES):
        op.drop_column(table, "node_rank")
    for name in (*reversed(_TIMES), *reversed(_FACTS)):
        op.drop_column("members", name)
