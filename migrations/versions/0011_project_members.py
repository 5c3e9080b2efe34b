"""Who may read the jobs of a project, and its members."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("projects", sa.Column("visibility", sa.String(), nullable=True))
    op.create_table(
        "project_members",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("added_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name="fk_project_members_project"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_project_members_user_id"),
        sa.PrimaryKeyConstraint("project", "user_id", name="pk_project_members"),
    )


def downgrade() -> None:
    op.drop_table("project_members")
    op.drop_column("projects", "visibility")
