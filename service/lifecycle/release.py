"""Giving devices back."""

from sqlalchemy import Connection, update

from service.db.models import Allocation


def release(tx: Connection, attempt_id: str, now: int, node: str | None = None) -> None:
    """Frees the attempt's devices, on one node if that is named; only a result or a proof of death may lead here."""
    held = update(Allocation).where(Allocation.attempt_id == attempt_id, Allocation.live)
    if node is not None:
        held = held.where(Allocation.node == node)
    tx.execute(held.values(live=False, released_us=now))
