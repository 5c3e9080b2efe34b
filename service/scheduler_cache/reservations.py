"""Reservations that hold now or later, as they are stored and as the policy knows them."""

from typing import Any

from sqlalchemy import Connection, Select, bindparam, select

from service.db.models import Reservation
from service.db.records.nodes import ReservationRecord
from service.scheduler.model.jobs import ReservationInfo

_TO_COME: Select[Any] = (
    select(Reservation.__table__)
    .where(Reservation.cancelled_us.is_(None), Reservation.ends_us > bindparam("from_us"))
    .order_by(Reservation.starts_us, Reservation.id)
)


def to_come(tx: Connection, from_us: int) -> list[ReservationRecord]:
    """Return reservations that hold at a moment or later, by their start."""
    return ReservationRecord.all(tx.execute(_TO_COME, {"from_us": from_us}))


def for_policy(tx: Connection, now: int) -> tuple[ReservationInfo, ...]:
    """Return what the policy keeps devices for."""
    return tuple(
        ReservationInfo(
            id=row.id,
            name=row.name,
            starts_us=row.starts_us,
            ends_us=row.ends_us,
            maintenance=row.maintenance,
            users=frozenset(row.users),
            projects=frozenset(row.projects),
            nodes=frozenset(row.nodes),
            gpus=row.gpus,
        )
        for row in to_come(tx, now)
    )
