"""Codes of sign-in links, and sign-ins by OpenID Connect under way: known to all services on a database."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0038"
down_revision: str | None = "0037"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "sign_in_codes",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name="fk_sign_in_codes_token_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_sign_in_codes_user_id"),
        sa.PrimaryKeyConstraint("sha256", name="pk_sign_in_codes"),
    )
    op.create_index("ix_sign_in_codes_token_id", "sign_in_codes", ["token_id"])
    op.create_index("ix_sign_in_codes_user_id", "sign_in_codes", ["user_id"])
    op.create_table(
        "oidc_attempts",
        sa.Column("state_sha256", sa.String(), nullable=False),
        sa.Column("nonce", sa.String(), nullable=False),
        sa.Column("verifier", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("state_sha256", name="pk_oidc_attempts"),
    )


def downgrade() -> None:
    op.drop_table("oidc_attempts")
    op.drop_table("sign_in_codes")
