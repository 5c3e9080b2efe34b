"""Measured network links between nodes: learnt from runs that spanned two, told to those who want to."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, select

from service.db.models import MetricSeries, NodeLink
from service.db.upsert import insert
from service.infra import times
from service.infra.times import moment
from torchyard.ids import AttemptId
from torchyard.network import speed

_MEASURED = (
    select(MetricSeries.last_value, MetricSeries.last_time_us)
    .where(MetricSeries.attempt_id == bindparam("attempt"))
    .where(MetricSeries.name == speed.METRIC, MetricSeries.last_value > 0)
    .order_by(MetricSeries.last_time_us.desc())
    .limit(1)
)


@dataclass(frozen=True, kw_only=True)
class MeasuredLink:
    """Rate of the network between two nodes, as a run has measured it."""

    a: str
    b: str
    rate: float
    """Bytes a second."""
    measured_us: int


def learn(tx: Connection, attempt_id: AttemptId, nodes: Sequence[str]) -> None:
    """Keep what an attempt on two nodes has measured; they are given in order.

    One on more nodes knows how fast the slowest pair of them is, but not which that is.
    """
    if len(nodes) != 2:
        return
    measured = tx.execute(_MEASURED, {"attempt": attempt_id}).one_or_none()
    if measured is not None:
        values = {"bytes_per_s": measured.last_value, "measured_us": measured.last_time_us}
        statement = insert(tx, NodeLink).values(a=nodes[0], b=nodes[1], **values)
        tx.execute(statement.on_conflict_do_update(index_elements=["a", "b"], set_=values))


def between(tx: Connection, nodes: Collection[str]) -> list[MeasuredLink]:
    """Return what is known of pairs of these nodes, the slowest first."""
    query = select(NodeLink).where(NodeLink.a.in_(nodes), NodeLink.b.in_(nodes))
    rows = tx.execute(query.order_by(NodeLink.bytes_per_s, NodeLink.a, NodeLink.b))
    return [MeasuredLink(a=row.a, b=row.b, rate=row.bytes_per_s, measured_us=row.measured_us) for row in rows]


def advice(found: Sequence[MeasuredLink]) -> str | None:
    """Say what the slowest of these links means for a training over it; None when there is none."""
    if not found:
        return None
    slowest = found[0]
    others = f", the slowest of {len(found)} measured pairs," if len(found) > 1 else ""
    wait = _duration(speed.TYPICAL_BYTES / slowest.rate)
    told = (
        f"the network between {slowest.a} and {slowest.b}{others} moved {speed.shown(slowest.rate)} at "
        f"{times.words(moment(slowest.measured_us))}: each {speed.TYPICAL_BYTES / 1e6:.0f} MB that a rank sends "
        f"in a step take {wait}; ranks of one node need no network"
    )
    return f"{told}. That is slow. {speed.MENDS}" if speed.is_slow(slowest.rate) else told


def params(found: Sequence[MeasuredLink]) -> dict[str, Any]:
    """Return what `advice` is made of, as parameters of a reason."""
    slowest = found[0]
    return {
        "advice": "network",
        "between": [slowest.a, slowest.b],
        "pairs": len(found),
        "rate": speed.shown(slowest.rate),
        "when": times.words(moment(slowest.measured_us)),
        "size": f"{speed.TYPICAL_BYTES / 1e6:.0f} MB",
        "wait": _duration(speed.TYPICAL_BYTES / slowest.rate),
        "slow": speed.is_slow(slowest.rate),
    }


def _duration(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 1 else f"{seconds * 1000:,.0f} ms"
