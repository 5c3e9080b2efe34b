"""Indexes of a job's tags and of metrics by value, and the GPU time of each day that could have been shared."""

import json
from collections import Counter
from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0030"
down_revision: str | None = "0029"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

#: Attempts of jobs that could be stopped for others: as their specs say, or since they have saved a checkpoint.
_STOPPABLE = """
SELECT attempts.gpu_time, jobs.user_id, jobs.project
FROM attempts JOIN jobs ON jobs.id = attempts.job_id
WHERE attempts.gpu_time IS NOT NULL AND (
    {preemptible} = {true}
    OR {preemptible} IS NULL
    AND ({restartable} = {true} OR EXISTS (SELECT 1 FROM checkpoints WHERE checkpoints.job_id = jobs.id))
)
"""
_SQLITE = {
    "preemptible": "json_extract(jobs.spec, '$.preemptible')",
    "restartable": "json_extract(jobs.spec, '$.restartable')",
    "true": "1",
}
_POSTGRESQL = {
    "preemptible": "jobs.spec ->> 'preemptible'",
    "restartable": "jobs.spec ->> 'restartable'",
    "true": "'true'",
}
_SET = """
UPDATE usage SET stoppable_us = :us WHERE day = :day AND user_id = :user AND project = :project AND kind = :kind
"""


def upgrade() -> None:
    op.create_index("ix_tags_number_tag", "tags", ["number", "tag"])
    op.create_index("ix_metric_series_name_value", "metric_series", ["name", "last_value", "number"])
    op.add_column("usage", sa.Column("stoppable_us", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    if not op.get_context().as_sql:
        _fill()


def _fill() -> None:
    words = _POSTGRESQL if op.get_context().dialect.name == "postgresql" else _SQLITE
    connection, found = op.get_bind(), Counter[tuple[int, str, str, str]]()
    for stored, user, project in connection.execute(sa.text(_STOPPABLE.format(**words))):
        for day, kinds in (json.loads(stored) if isinstance(stored, str) else stored).items():
            for kind, us in kinds.items():
                found[int(day), user, project, kind] += us
    rows = [
        {"day": day, "user": user, "project": project, "kind": kind, "us": us}
        for (day, user, project, kind), us in found.items()
    ]
    if rows:
        connection.execute(sa.text(_SET), rows)


def downgrade() -> None:
    op.drop_column("usage", "stoppable_us")
    op.drop_index("ix_metric_series_name_value", "metric_series")
    op.drop_index("ix_tags_number_tag", "tags")
