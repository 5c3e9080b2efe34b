"""Roles of users and of project members, and service accounts."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0013"
down_revision: str | None = "0012"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("users", sa.Column("role", sa.String(), server_default="member", nullable=False))
    op.execute(sa.text("UPDATE users SET role = 'administrator' WHERE admin"))
    op.drop_column("users", "admin")
    op.add_column("users", sa.Column("project", sa.String(), nullable=True))
    op.add_column("project_members", sa.Column("role", sa.String(), server_default="member", nullable=False))


def downgrade() -> None:
    op.drop_column("project_members", "role")
    op.drop_column("users", "project")
    op.add_column("users", sa.Column("admin", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute(sa.text("UPDATE users SET admin = true WHERE role = 'administrator'"))
    op.drop_column("users", "role")
