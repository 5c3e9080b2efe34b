"""Giving devices back."""

from sqlalchemy import Connection, update

from service.db.models import Allocation


def release(tx: Connection, attempt_id: str, now: int) -> None:
    """Frees the attempt's devices; only a result or a proof of death may lead here."""
    tx.execute(
        update(Allocation)
        .where(Allocation.attempt_id == attempt_id, Allocation.live)
        .values(live=False, released_us=now)
    )
