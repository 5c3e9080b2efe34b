"""Sharing: accounts, usage, forecasts, sweeps, dependencies, reservations, shared devices, preemption, hanging runs."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import context, op
from alembic.util import CommandError

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_LIVE = "uq_allocations_live"


def _counter(name: str) -> "sa.Column[Any]":
    return sa.Column(name, sa.BigInteger(), server_default=sa.text("0"), nullable=False)


def _number(name: str, *, nullable: bool = True) -> "sa.Column[Any]":
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def _words(name: str) -> "sa.Column[Any]":
    return sa.Column(name, sa.String(), nullable=False)


def _facts(name: str) -> "sa.Column[Any]":
    return sa.Column(name, sa.JSON(none_as_null=True), nullable=True)


def _new_columns() -> dict[str, list["sa.Column[Any]"]]:
    columns: dict[str, list[sa.Column[Any]]] = {
        "users": [_number("deactivated_us")],
        "nodes": [_facts("labels"), _facts("capabilities"), sa.Column("maintenance", sa.String(), nullable=True)],
        "devices": [_facts("topology")],
        "allocations": [_number("share")],
        "attempts": [
            _facts("yielding"),
            _number("spared_until_us"),
            _counter("dump_serial"),
            _number("hung_us"),
            _facts("gpu_time"),
        ],
        "jobs": [
            _counter("changed_us"),
            _counter("eligible_us"),
            sa.Column("blocked", sa.Boolean(), server_default=sa.false(), nullable=False),
            _counter("ran_us"),
            _number("retry_us"),
            _counter("preemptions"),
            sa.Column("group_id", sa.String(), nullable=True),
            _number("trial"),
            _facts("parameters"),
        ],
    }
    return columns


def _live(share: str) -> None:
    where = sa.text(f"live{share}")
    op.create_index(_LIVE, "allocations", ["node", "uuid"], unique=True, sqlite_where=where, postgresql_where=where)


def upgrade() -> None:
    for table, columns in _new_columns().items():
        for column in columns:
            op.add_column(table, column)
    op.drop_index(_LIVE, table_name="allocations")
    _live(" AND share IS NULL")
    op.execute("UPDATE jobs SET eligible_us = created_us")
    op.create_index(op.f("ix_jobs_group_id"), "jobs", ["group_id"])
    op.create_index("ix_jobs_changed_us", "jobs", ["changed_us"])
    _create_devices()
    _create_jobs()
    _create_accounts()


def _create_devices() -> None:
    op.create_table(
        "device_use",
        _words("node"),
        _words("uuid"),
        _number("capacity", nullable=False),
        _number("used", nullable=False),
        sa.CheckConstraint("used >= 0 AND used <= capacity", name=op.f("ck_device_use_within_capacity")),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name=op.f("fk_device_use_node")),
        sa.PrimaryKeyConstraint("node", "uuid", name=op.f("pk_device_use")),
    )
    op.execute(
        "INSERT INTO device_use (node, uuid, capacity, used) SELECT d.node, d.uuid, d.memory, d.memory FROM devices d "
        "JOIN allocations a ON a.node = d.node AND a.uuid = d.uuid WHERE a.live"
    )
    op.create_table(
        "node_links",
        _words("a"),
        _words("b"),
        sa.Column("bytes_per_s", sa.Double(), nullable=False),
        _number("measured_us", nullable=False),
        sa.ForeignKeyConstraint(["a"], ["nodes.name"], name=op.f("fk_node_links_a")),
        sa.ForeignKeyConstraint(["b"], ["nodes.name"], name=op.f("fk_node_links_b")),
        sa.PrimaryKeyConstraint("a", "b", name=op.f("pk_node_links")),
    )


def _create_jobs() -> None:
    op.create_table(
        "dependencies",
        _words("job_id"),
        _words("needs"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_dependencies_job_id")),
        sa.ForeignKeyConstraint(["needs"], ["jobs.id"], name=op.f("fk_dependencies_needs")),
        sa.PrimaryKeyConstraint("job_id", "needs", name=op.f("pk_dependencies")),
    )
    op.create_index(op.f("ix_dependencies_needs"), "dependencies", ["needs"])
    op.create_table(
        "groups",
        _words("id"),
        _number("number", nullable=False),
        _words("user_id"),
        _words("project"),
        _words("name"),
        sa.Column("sweep", sa.JSON(), nullable=False),
        _number("size", nullable=False),
        sa.Column("paused", sa.String(), nullable=True),
        _number("resumed_us"),
        _number("created_us", nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_groups_user_id")),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name=op.f("fk_groups_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_groups")),
        sa.UniqueConstraint("number", name=op.f("uq_groups_number")),
    )
    op.create_table(
        "forecasts",
        _words("job_id"),
        _words("source"),
        _words("key"),
        _number("p10_us"),
        _number("p50_us"),
        _number("p90_us"),
        _number("raw_p10_us"),
        _number("raw_p50_us"),
        _number("raw_p90_us"),
        _number("made_us", nullable=False),
        _number("actual_us"),
        _number("ended_us"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_forecasts_job_id")),
        sa.PrimaryKeyConstraint("job_id", "source", name=op.f("pk_forecasts")),
    )
    op.create_index("ix_forecasts_ended_us", "forecasts", ["ended_us"])
    op.create_table(
        "stacks",
        _words("attempt_id"),
        _number("node_rank", nullable=False),
        _number("serial", nullable=False),
        _number("at_us", nullable=False),
        sa.Column("dump", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_stacks_attempt_id")),
        sa.PrimaryKeyConstraint("attempt_id", "node_rank", "serial", name=op.f("pk_stacks")),
    )


def _create_accounts() -> None:
    op.create_table(
        "accounts",
        _words("kind"),
        _words("name"),
        sa.Column("weight", sa.Double(), nullable=True),
        _number("max_gpus"),
        sa.Column("max_gpu_hours", sa.Double(), nullable=True),
        _number("max_queued"),
        sa.Column("usage", sa.Double(), nullable=False),
        _number("usage_us", nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", name=op.f("pk_accounts")),
    )
    op.create_table(
        "usage",
        _number("day", nullable=False),
        _words("user_id"),
        _words("project"),
        _words("kind"),
        _number("gpu_us", nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_usage_user_id")),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name=op.f("fk_usage_project")),
        sa.PrimaryKeyConstraint("day", "user_id", "project", "kind", name=op.f("pk_usage")),
    )
    op.create_table(
        "reservations",
        _words("id"),
        _words("name"),
        sa.Column("maintenance", sa.Boolean(), nullable=False),
        sa.Column("users", sa.JSON(), nullable=False),
        sa.Column("projects", sa.JSON(), nullable=False),
        sa.Column("nodes", sa.JSON(), nullable=False),
        _number("gpus"),
        _number("starts_us", nullable=False),
        _number("ends_us", nullable=False),
        _words("created_by"),
        _number("created_us", nullable=False),
        _number("cancelled_us"),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("fk_reservations_created_by")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reservations")),
    )


_SHARED = """
SELECT a.node, a.uuid, j.number FROM allocations a JOIN attempts t ON t.id = a.attempt_id JOIN jobs j ON j.id = t.job_id
WHERE a.live AND 1 < (SELECT count(*) FROM allocations b WHERE b.live AND b.node = a.node AND b.uuid = a.uuid)
ORDER BY a.node, a.uuid, j.number
"""


def _refuse_shared() -> None:
    """Revision 0002 cannot keep two jobs on one GPU; said before anything is changed."""
    if context.is_offline_mode():
        return
    jobs: dict[str, list[str]] = {}
    for node, uuid, number in op.get_bind().execute(sa.text(_SHARED)):
        jobs.setdefault(f"GPU {uuid} of node {node}", []).append(str(number))
    if jobs:
        which = "; ".join(f"jobs {', '.join(numbers)} on {gpu}" for gpu, numbers in jobs.items())
        raise CommandError(
            f"Revision 0002 knows no shared GPUs, and these are shared now: {which}. Nothing was changed. Wait until "
            "all but one of each have ended, or cancel them (`yard cancel JOB`), then downgrade again."
        )


def downgrade() -> None:
    _refuse_shared()
    for table in ("reservations", "usage", "accounts", "stacks", "forecasts", "groups", "dependencies"):
        op.drop_table(table)
    op.drop_table("node_links")
    op.drop_table("device_use")
    op.drop_index("ix_jobs_changed_us", table_name="jobs")
    op.drop_index(op.f("ix_jobs_group_id"), table_name="jobs")
    op.drop_index(_LIVE, table_name="allocations")
    _live("")
    for table, columns in reversed(_new_columns().items()):
        for column in reversed(columns):
            op.drop_column(table, column.name)
