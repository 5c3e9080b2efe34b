"""Secrets of users and projects, encrypted."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0012"
down_revision: str | None = "0011"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "secrets",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("project", sa.String(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("encrypted", sa.String(), nullable=False),
        sa.Column("set_by", sa.String(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("changed_us", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("(user_id IS NULL) <> (project IS NULL)", name=op.f("ck_secrets_one_owner")),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name="fk_secrets_project"),
        sa.ForeignKeyConstraint(["set_by"], ["users.id"], name="fk_secrets_set_by"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_secrets_user_id"),
        sa.PrimaryKeyConstraint("id", name="pk_secrets"),
        sa.UniqueConstraint("project", "name", name="uq_secrets_project_name"),
        sa.UniqueConstraint("user_id", "name", name="uq_secrets_user_id_name"),
    )


def downgrade() -> None:
    op.drop_table("secrets")
