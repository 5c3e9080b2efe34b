"""The first tables."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def _has_sequences() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def upgrade() -> None:
    if _has_sequences():
        op.execute("CREATE SEQUENCE job_numbers")
    op.create_table(
        "audit",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_table(
        "blobs",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_blobs")),
    )
    op.create_table(
        "installation",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_installation")),
    )
    op.create_table(
        "metric_points",
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("special", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("series_id", "seq", name=op.f("pk_metric_points")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "nodes",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("node_id", sa.String(), nullable=False),
        sa.Column("home_id", sa.String(), nullable=False),
        sa.Column("boot_id", sa.String(), nullable=False),
        sa.Column("pid_namespace", sa.String(), nullable=False),
        sa.Column("hostname", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("runs_as_root", sa.Boolean(), nullable=False),
        sa.Column("draining", sa.Boolean(), nullable=False),
        sa.Column("unreachable", sa.Boolean(), nullable=False),
        sa.Column("cpus", sa.BigInteger(), nullable=False),
        sa.Column("memory", sa.BigInteger(), nullable=False),
        sa.Column("disk_free", sa.BigInteger(), nullable=False),
        sa.Column("offenders", sa.JSON(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_us", sa.BigInteger(), nullable=True),
        sa.Column("registered_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_nodes")),
    )
    op.create_table(
        "projects",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_projects")),
    )
    op.create_table(
        "samples",
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.Column("values", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("node", "attempt_id", "time_us", name=op.f("pk_samples")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("admin", sa.Boolean(), nullable=False),
        sa.Column("unix_user", sa.String(), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )
    op.create_table(
        "blob_grants",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["sha256"], ["blobs.sha256"], name=op.f("fk_blob_grants_sha256")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_blob_grants_user_id")),
        sa.PrimaryKeyConstraint("sha256", "user_id", name=op.f("pk_blob_grants")),
    )
    op.create_table(
        "devices",
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("uuid", sa.String(), nullable=False),
        sa.Column("index", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("memory", sa.BigInteger(), nullable=False),
        sa.Column("unusable", sa.String(), nullable=True),
        sa.Column("present", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name=op.f("fk_devices_node")),
        sa.PrimaryKeyConstraint("node", "uuid", name=op.f("pk_devices")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("retries_used", sa.BigInteger(), nullable=False),
        sa.Column("stop", sa.String(), nullable=True),
        sa.Column("stop_actor", sa.String(), nullable=True),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("total_steps", sa.BigInteger(), nullable=True),
        sa.Column("rerun_of", sa.String(), nullable=True),
        sa.Column("restore_checkpoint", sa.String(), nullable=True),
        sa.Column("last_event", sa.BigInteger(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("queued_us", sa.BigInteger(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=True),
        sa.Column("ended_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name=op.f("fk_jobs_project")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_jobs_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("number", name=op.f("uq_jobs_number")),
    )
    op.create_index("ix_jobs_queue", "jobs", ["state", "priority", "number"], unique=False)
    op.create_index("ix_jobs_user_id_state", "jobs", ["user_id", "state"], unique=False)
    op.create_table(
        "snapshots",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("committed", sa.Boolean(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_snapshots_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snapshots")),
        sa.UniqueConstraint("user_id", "sha256", name=op.f("uq_snapshots_user_id_sha256")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("node", sa.String(), nullable=True),
        sa.Column("parent_id", sa.String(), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=True),
        sa.Column("last_used_us", sa.BigInteger(), nullable=True),
        sa.Column("revoked_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["parent_id"], ["tokens.id"], name=op.f("fk_tokens_parent_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_tokens_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("sha256", name=op.f("uq_tokens_sha256")),
    )
    op.create_index(op.f("ix_tokens_parent_id"), "tokens", ["parent_id"], unique=False)
    op.create_index(op.f("ix_tokens_user_id"), "tokens", ["user_id"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("restore_checkpoint", sa.String(), nullable=True),
        sa.Column("resumed_from_step", sa.BigInteger(), nullable=True),
        sa.Column("checkpoint_serial", sa.BigInteger(), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("nudged_us", sa.BigInteger(), nullable=True),
        sa.Column("claimed_us", sa.BigInteger(), nullable=True),
        sa.Column("started_us", sa.BigInteger(), nullable=True),
        sa.Column("ended_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_attempts_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
        sa.UniqueConstraint("job_id", "number", name=op.f("uq_attempts_job_id_number")),
    )
    op.create_index("ix_attempts_state", "attempts", ["state"], unique=False)
    op.create_table(
        "events",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=True),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_events_job_id")),
        sa.PrimaryKeyConstraint("job_id", "seq", name=op.f("pk_events")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("body_sha256", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_idempotency_keys_job_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_idempotency_keys_user_id")),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "snapshot_files",
        sa.Column("snapshot_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["snapshot_id"], ["snapshots.id"], name=op.f("fk_snapshot_files_snapshot_id")),
        sa.PrimaryKeyConstraint("snapshot_id", "path", name=op.f("pk_snapshot_files")),
    )
    op.create_index(op.f("ix_snapshot_files_sha256"), "snapshot_files", ["sha256"], unique=False)
    op.create_table(
        "tags",
        sa.Column("tag", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_tags_job_id")),
        sa.PrimaryKeyConstraint("tag", "job_id", name=op.f("pk_tags")),
    )
    op.create_table(
        "allocations",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("uuid", sa.String(), nullable=False),
        sa.Column("index", sa.BigInteger(), nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("released_us", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("live = (released_us IS NULL)", name=op.f("ck_allocations_live_until_released")),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_allocations_attempt_id")),
        sa.PrimaryKeyConstraint("attempt_id", "node", "uuid", name=op.f("pk_allocations")),
    )
    op.create_index(
        "uq_allocations_live",
        "allocations",
        ["node", "uuid"],
        unique=True,
        sqlite_where=sa.text("live"),
        postgresql_where=sa.text("live"),
    )
    op.create_table(
        "checkpoints",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("deleted_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_checkpoints_attempt_id")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_checkpoints_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoints")),
        sa.UniqueConstraint("attempt_id", "name", name=op.f("uq_checkpoints_attempt_id_name")),
    )
    op.create_index(op.f("ix_checkpoints_job_id"), "checkpoints", ["job_id"], unique=False)
    op.create_table(
        "log_streams",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("dropped_bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_log_streams_attempt_id")),
        sa.PrimaryKeyConstraint("attempt_id", "rank", name=op.f("pk_log_streams")),
    )
    op.create_table(
        "members",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("node_rank", sa.BigInteger(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("nonce", sa.String(), nullable=True),
        sa.Column("claimed_on", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("settled", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_members_attempt_id")),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name=op.f("fk_members_node")),
        sa.PrimaryKeyConstraint("attempt_id", "node_rank", name=op.f("pk_members")),
    )
    op.create_index(op.f("ix_members_node"), "members", ["node"], unique=False)
    op.create_table(
        "metric_series",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=True),
        sa.Column("last_time_us", sa.BigInteger(), nullable=True),
        sa.Column("last_value", sa.Double(), nullable=True),
        sa.Column("last_special", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_metric_series_attempt_id")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_metric_series_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_metric_series")),
        sa.UniqueConstraint("attempt_id", "stream", "name", name=op.f("uq_metric_series_attempt_id_stream_name")),
    )
    op.create_index(op.f("ix_metric_series_job_id"), "metric_series", ["job_id"], unique=False)
    op.create_table(
        "metric_streams",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("node_rank", sa.BigInteger(), nullable=False),
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_metric_streams_attempt_id")),
        sa.PrimaryKeyConstraint("attempt_id", "node_rank", "stream", name=op.f("pk_metric_streams")),
    )
    op.create_table(
        "outputs",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_outputs_attempt_id")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_outputs_job_id")),
        sa.PrimaryKeyConstraint("job_id", "path", name=op.f("pk_outputs")),
    )
    op.create_index(op.f("ix_outputs_sha256"), "outputs", ["sha256"], unique=False)
    op.create_table(
        "checkpoint_files",
        sa.Column("checkpoint_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["checkpoint_id"], ["checkpoints.id"], name=op.f("fk_checkpoint_files_checkpoint_id")),
        sa.PrimaryKeyConstraint("checkpoint_id", "path", name=op.f("pk_checkpoint_files")),
    )
    op.create_index(op.f("ix_checkpoint_files_sha256"), "checkpoint_files", ["sha256"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_checkpoint_files_sha256"), table_name="checkpoint_files")
    op.drop_table("checkpoint_files")
    op.drop_index(op.f("ix_outputs_sha256"), table_name="outputs")
    op.drop_table("outputs")
    op.drop_table("metric_streams")
    op.drop_index(op.f("ix_metric_series_job_id"), table_name="metric_series")
    op.drop_table("metric_series")
    op.drop_index(op.f("ix_members_node"), table_name="members")
    op.drop_table("members")
    op.drop_table("log_streams")
    op.drop_index(op.f("ix_checkpoints_job_id"), table_name="checkpoints")
    op.drop_table("checkpoints")
    op.drop_index(
        "uq_allocations_live", table_name="allocations", sqlite_where=sa.text("live"), postgresql_where=sa.text("live")
    )
    op.drop_table("allocations")
    op.drop_table("tags")
    op.drop_index(op.f("ix_snapshot_files_sha256"), table_name="snapshot_files")
    op.drop_table("snapshot_files")
    op.drop_table("idempotency_keys")
    op.drop_table("events")
    op.drop_index("ix_attempts_state", table_name="attempts")
    op.drop_table("attempts")
    op.drop_index(op.f("ix_tokens_user_id"), table_name="tokens")
    op.drop_index(op.f("ix_tokens_parent_id"), table_name="tokens")
    op.drop_table("tokens")
    op.drop_table("snapshots")
    op.drop_index("ix_jobs_user_id_state", table_name="jobs")
    op.drop_index("ix_jobs_queue", table_name="jobs")
    op.drop_table("jobs")
    op.drop_table("devices")
    op.drop_table("blob_grants")
    op.drop_table("users")
    op.drop_table("samples")
    op.drop_table("projects")
    op.drop_table("nodes")
    op.drop_table("metric_points")
    op.drop_table("installation")
    op.drop_table("blobs")
    op.drop_table("audit")
    if _has_sequences():
        op.execute("DROP SEQUENCE job_numbers")
