"""GPU time that came to nothing, by day and job, and an index of jobs by their start: for the digest of a week."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0037"
down_revision: str | None = "0036"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

#: Of so many jobs at a time: those of years are not held in memory together.
_AT_ONCE = 10_000
_CHARGED = """
SELECT jobs.number, jobs.user_id, attempts.gpu_time FROM attempts JOIN jobs ON jobs.id = attempts.job_id
WHERE attempts.gpu_time IS NOT NULL AND jobs.number >= :first AND jobs.number < :end
"""
_KINDS = ("idle", "failed", "lost")


def upgrade() -> None:
    wasted = op.create_table(
        "wasted_usage",
        sa.Column("day", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("gpu_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["number"], ["jobs.number"], name="fk_wasted_usage_number"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_wasted_usage_user_id"),
        sa.PrimaryKeyConstraint("day", "kind", "number", name="pk_wasted_usage"),
    )
    op.create_index("ix_jobs_started_us", "jobs", ["started_us", "eligible_us", "created_us"])
    if not op.get_context().as_sql:
        _fill(wasted)


def _fill(wasted: sa.Table) -> None:
    connection = op.get_bind()
    last = connection.scalar(sa.text("SELECT MAX(number) FROM jobs")) or 0
    for first in range(0, last + 1, _AT_ONCE):
        rows = _rows(connection.execute(sa.text(_CHARGED), {"first": first, "end": first + _AT_ONCE}))
        if rows:
            connection.execute(wasted.insert(), rows)


def _rows(charged: Iterable[Any]) -> list[dict[str, Any]]:
    found = Counter[tuple[int, str, int, str]]()
    for number, user, stored in charged:
        for day, kinds in (json.loads(stored) if isinstance(stored, str) else stored).items():
            for kind in _KINDS:
                if us := kinds.get(kind, 0):
                    found[int(day), kind, number, user] += us
    names = ("day", "kind", "number", "user_id")
    return [dict(zip(names, key, strict=True)) | {"gpu_us": us} for key, us in found.items()]


def downgrade() -> None:
    op.drop_index("ix_jobs_started_us", "jobs")
    op.drop_table("wasted_usage")
