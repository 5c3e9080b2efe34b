"""Files that jobs write anywhere below their folder, by root and node."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("carry_from", sa.String(), nullable=True))
    op.add_column("attempts", sa.Column("carried_from", sa.String(), nullable=True))
    op.add_column("attempts", sa.Column("saved", sa.Boolean(), server_default=sa.false(), nullable=False))
    _set_aside()
    op.create_table(
        "outputs",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("root", sa.String(), server_default="output", nullable=False),
        sa.Column("node_rank", sa.BigInteger(), server_default=sa.text("0"), nullable=False, autoincrement=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("mode", sa.BigInteger(), server_default=sa.text("420"), nullable=False),
        sa.Column("state", sa.String(), server_default="stored", nullable=False),
        sa.Column("kept", sa.String(), nullable=True),
        sa.Column("wanted", sa.Boolean(), server_default=sa.false(), nullable=False),
        *_references(),
        sa.PrimaryKeyConstraint("job_id", "root", "node_rank", "path", name=op.f("pk_outputs")),
    )
    op.create_index(op.f("ix_outputs_attempt_id"), "outputs", ["attempt_id"])
    op.create_index(op.f("ix_outputs_sha256"), "outputs", ["sha256"])
    columns = "job_id, path, attempt_id, size, sha256"
    op.execute(
        f"INSERT INTO outputs ({columns}, node_rank) "  # noqa: S608  names of our own
        f"SELECT {columns}, COALESCE(node_rank, 0) FROM outputs_before"
    )
    op.drop_table("outputs_before")


def downgrade() -> None:
    """Keeps what the version before knows: of each name in the output folder one file, the lowest node rank's."""
    op.drop_index(op.f("ix_outputs_attempt_id"), "outputs")
    _set_aside()
    op.create_table(
        "outputs",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("node_rank", sa.BigInteger(), nullable=True),
        *_references(),
        sa.PrimaryKeyConstraint("job_id", "path", name=op.f("pk_outputs")),
    )
    op.create_index(op.f("ix_outputs_sha256"), "outputs", ["sha256"])
    columns = "job_id, path, attempt_id, size, sha256, node_rank"
    op.execute(
        f"INSERT INTO outputs ({columns}) SELECT {columns} FROM outputs_before AS it "  # noqa: S608
        "WHERE root = 'output' AND state = 'stored' AND NOT EXISTS (SELECT 1 FROM outputs_before AS lower "
        "WHERE lower.job_id = it.job_id AND lower.root = it.root AND lower.path = it.path "
        "AND lower.state = it.state AND lower.node_rank < it.node_rank)"
    )
    op.drop_table("outputs_before")
    op.drop_column("attempts", "saved")
    op.drop_column("attempts", "carried_from")
    op.drop_column("jobs", "carry_from")


def _set_aside() -> None:
    """Renames the table; its index and its constraints make room for those of the new one."""
    op.drop_index(op.f("ix_outputs_sha256"), "outputs")
    op.rename_table("outputs", "outputs_before")
    if op.get_bind().dialect.name == "postgresql":
        for name in ("pk_outputs", "fk_outputs_job_id", "fk_outputs_attempt_id"):
            op.drop_constraint(name, "outputs_before")


def _references() -> list[sa.ForeignKeyConstraint]:
    return [
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_outputs_attempt_id")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_outputs_job_id")),
    ]
