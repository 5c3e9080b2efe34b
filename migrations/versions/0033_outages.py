"""Outages: when devices and nodes were given to no new job. Those that hold at the upgrade begin with it."""

import time
from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0033"
down_revision: str | None = "0032"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_QUARANTINED, _FAULTY = "in quarantine: ", "failed under the last "
_DEVICES = """
INSERT INTO outages (node, uuid, kind, reason, started_us)
SELECT node, uuid, 'quarantine', replace(unusable, :quarantined, ''), :now FROM devices
WHERE substr(unusable, 1, :quarantined_length) = :quarantined OR substr(unusable, 1, :faulty_length) = :faulty
"""
_DRAINS = """
INSERT INTO outages (node, kind, reason, started_us)
SELECT nodes.name, CASE WHEN nodes.maintenance IS NULL THEN 'drain' ELSE 'maintenance' END,
    COALESCE(CASE WHEN nodes.maintenance IS NULL THEN nodes.drain_message ELSE reservations.name END, ''), :now
FROM nodes LEFT JOIN reservations ON reservations.id = nodes.maintenance WHERE nodes.draining
"""
_SILENCES = """
INSERT INTO outages (node, kind, reason, started_us)
SELECT name, 'unreachable', '', :now FROM nodes WHERE unreachable
"""


def upgrade() -> None:
    op.create_table(
        "outages",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("uuid", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("ended_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name="fk_outages_node"),
        sa.PrimaryKeyConstraint("id", name="pk_outages"),
    )
    op.create_index("ix_outages_ended_us", "outages", ["ended_us"])
    if not op.get_context().as_sql:
        _fill()


def _fill() -> None:
    connection, now = op.get_bind(), sa.bindparam("now", time.time_ns() // 1000, sa.BigInteger())
    faults = {"quarantined": _QUARANTINED, "faulty": _FAULTY}
    words = [sa.bindparam(name, value, sa.String()) for name, value in faults.items()]
    lengths = [sa.bindparam(f"{name}_length", len(value), sa.Integer()) for name, value in faults.items()]
    connection.execute(sa.text(_DEVICES).bindparams(now, *words, *lengths))
    for statement in (_DRAINS, _SILENCES):
        connection.execute(sa.text(statement).bindparams(now))


def downgrade() -> None:
    op.drop_table("outages")
