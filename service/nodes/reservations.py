"""Reservations: devices kept for people or projects, or nodes out of use, from one moment to another."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, insert, select, update

from service.db.engine import Database
from service.db.models import Device, Installation, Node, Reservation, User
from service.db.records.nodes import ReservationRecord
from service.errors import field_problem, not_found
from service.identity import audit, project_names, users
from service.identity.callers import Caller
from service.infra import times
from service.infra.times import moment
from service.scheduler_cache.reservations import to_come
from torchyard.api import sharing
from torchyard.ids import new_id
from torchyard.translatable import TranslatableText

#: A client's clock may be off by so much.
PAST_US = 60 * 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservedResources:
    """Whole nodes, or a number of GPUs of any nodes, from one moment to another."""

    name: str
    starts_us: int
    ends_us: int
    nodes: frozenset[str] = frozenset()
    gpus: int = 0

    def overlaps(self, other: "ReservedResources") -> bool:
        """Return true if both hold at the same time."""
        return self.starts_us < other.ends_us and other.starts_us < self.ends_us


def conflict(
    new: ReservedResources, existing: Sequence[ReservedResources], devices: Mapping[str, int], unit: str = "gpu"
) -> tuple[str, TranslatableText] | None:
    """Return the field of a new reservation that conflicts with existing ones, and what is free; None if it fits.

    `devices` holds how many devices of each node count, which are GPUs, or CPU slots (`unit`). Only where a reservation
    begins can there be too many.
    """
    others = [resources for resources in existing if resources.overlaps(new)]
    for other in others:
        if taken := sorted(other.nodes & new.nodes):
            return "nodes", _reserved(taken, other)
    moments = [max(new.starts_us, resources.starts_us) for resources in (new, *others)]
    free = min(
        _left(devices, [resources for resources in others if resources.starts_us <= at < resources.ends_us])
        for at in moments
    )
    wanted = new.gpus + sum(devices[node] for node in new.nodes)
    if wanted <= max(0, free):
        return None
    start, end = _span(new)
    given: dict[str, str | int] = {
        "wanted": wanted,
        "free": max(0, free),
        "all": sum(devices.values()),
        "start": start,
        "end": end,
    }
    return ("nodes" if new.nodes else "gpus"), _too_many(unit, given)


def _too_many(unit: str, given: Mapping[str, str | int]) -> TranslatableText:
    if unit == "gpu":
        return TranslatableText(
            "reserve-fewer",
            "{free} of {all} GPUs are free of reservations from {start} to {end}, not {wanted}",
            **given,
        )
    return TranslatableText(
        "reserve-fewer-slots",
        "{free} of {all} CPU slots are free of reservations from {start} to {end}, not {wanted}",
        **given,
    )


def _left(devices: Mapping[str, int], existing: Iterable[ReservedResources]) -> int:
    taken = sum(resources.gpus + sum(devices.get(node, 0) for node in resources.nodes) for resources in existing)
    return sum(devices.values()) - taken


def _reserved(nodes: Sequence[str], by: ReservedResources) -> TranslatableText:
    start, end = _span(by)
    if len(nodes) == 1:
        return TranslatableText(
            "node-reserved",
            "{node} is reserved for {name!r} from {start} to {end}",
            node=nodes[0],
            name=by.name,
            start=start,
            end=end,
        )
    return TranslatableText(
        "nodes-reserved",
        "{nodes} are reserved for {name!r} from {start} to {end}",
        nodes=tuple(nodes),
        name=by.name,
        start=start,
        end=end,
    )


def _span(resources: ReservedResources) -> tuple[str, str]:
    return times.words(moment(resources.starts_us)), times.words(moment(resources.ends_us))


def create(db: Database, caller: Caller, new: sharing.NewReservation, now: int) -> sharing.Reservation:
    """Store a reservation; problems name the field, and what is free instead."""
    with db.unit_of_work(now) as unit:
        made = _create(unit.tx, caller, new, now)
        told = made.model_dump(mode="json", include={"name", "starts_at", "ends_at", "maintenance"})
        audit.record(unit.tx, caller, "reservation.create", made.id, now, **told)
        unit.wake_scheduler()
    return made


def change(db: Database, caller: Caller, id_: str, new: sharing.NewReservation, now: int) -> sharing.Reservation:
    """Replace a reservation that is not over; what it holds now counts as free for it."""
    with db.unit_of_work(now) as unit:
        tx = unit.tx
        _one_at_a_time(tx)
        old = find(tx, id_)
        if old.cancelled_us is not None or old.ends_us <= now:
            raise not_found("reservation to come", id_)
        values = _values(tx, new, now, old)
        tx.execute(update(Reservation).where(Reservation.id == id_).values(**values))
        made = _present(tx, [find(tx, id_)], now)[0]
        told = made.model_dump(mode="json", include={"name", "starts_at", "ends_at", "maintenance"})
        audit.record(tx, caller, "reservation.change", id_, now, **told)
        unit.wake_scheduler()
    return made


def _create(tx: Connection, caller: Caller, new: sharing.NewReservation, now: int) -> sharing.Reservation:
    _one_at_a_time(tx)
    made = {"id": new_id("res"), "created_by": caller.user_id, "created_us": now}
    tx.execute(insert(Reservation).values(**made, **_values(tx, new, now)))
    return _present(tx, [find(tx, str(made["id"]))], now)[0]


def _one_at_a_time(tx: Connection) -> None:
    tx.execute(select(Installation.key).where(Installation.key == "id").with_for_update())


def _values(
    tx: Connection, new: sharing.NewReservation, now: int, old: ReservationRecord | None = None
) -> dict[str, Any]:
    """Return what is stored of a reservation, in place of an old one; problems name the field."""
    starts_us, ends_us = _interval(new, now, old)
    _check_purpose(new)
    user_ids = [users.by_name(tx, name).id for name in dict.fromkeys(new.users)]
    _check_projects(tx, new.projects)
    unit, devices = _devices(tx)
    for name in new.nodes:
        if name not in devices:
            known = tuple(sorted(devices)) or ("none",)
            raise field_problem(
                "nodes",
                TranslatableText(
                    "reserved-node", "there is no node {name}: take one of {known}", name=name, known=known
                ),
            )
    resources = ReservedResources(
        name=new.name, starts_us=starts_us, ends_us=ends_us, nodes=frozenset(new.nodes), gpus=new.gpus or 0
    )
    if found := conflict(resources, _others(tx, now, old), devices, unit):
        field, why = found
        raise field_problem(
            field,
            TranslatableText(
                "reservations-conflict",
                "{why}: ask for less, or take another time (`yard reservations` shows them)",
                why=why,
            ),
        )
    return {
        "name": new.name,
        "maintenance": new.maintenance,
        "users": user_ids,
        "projects": list(dict.fromkeys(new.projects)),
        "nodes": list(dict.fromkeys(new.nodes)),
        "gpus": new.gpus,
        "starts_us": starts_us,
        "ends_us": ends_us,
    }


def _others(tx: Connection, now: int, old: ReservationRecord | None) -> list[ReservedResources]:
    return [_resources(each) for each in to_come(tx, now) if old is None or each.id != old.id]


def _interval(new: sharing.NewReservation, now: int, old: ReservationRecord | None) -> tuple[int, int]:
    begun_us = None if old is None or old.starts_us > now else old.starts_us
    starts_us = (begun_us or now) if new.starts_at is None else _us(new.starts_at)
    ends_us = _us(new.ends_at)
    if starts_us < now - PAST_US and starts_us != begun_us:
        raise field_problem("starts_at", TranslatableText("in-the-past", "lies in the past: leave it out to begin now"))
    if ends_us <= max(starts_us, now):
        raise field_problem("ends_at", TranslatableText("ends-before", "must be later than starts_at, and to come"))
    return starts_us, ends_us


def _us(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def _check_purpose(new: sharing.NewReservation) -> None:
    if new.maintenance == bool(new.users or new.projects):
        raise field_problem(
            "users", TranslatableText("reserved-for", "name users or projects, or else say maintenance: true")
        )
    if bool(new.nodes) == (new.gpus is not None):
        raise field_problem(
            "gpus", TranslatableText("gpus-or-nodes", "give either gpus (a number, of any nodes) or nodes (whole ones)")
        )
    if new.maintenance and not new.nodes:
        raise field_problem("nodes", TranslatableText("maintenance-nodes", "name the nodes of the maintenance"))


def _check_projects(tx: Connection, names: Iterable[str]) -> None:
    for name in names:
        if not project_names.exists(tx, name):
            raise field_problem("projects", TranslatableText("project-absent", "there is no project {name}", name=name))


def _devices(tx: Connection) -> tuple[str, dict[str, int]]:
    """Return the kind of the devices that count, GPUs or, where no node has any, CPU slots; and each node's usable."""
    present = select(Node.name, Device.kind, Device.unusable).outerjoin(
        Device, (Device.node == Node.name) & Device.present
    )
    rows = tx.execute(present).all()
    kinds = {row.kind for row in rows if row.kind is not None}
    unit = "cpu" if kinds == {"cpu"} else "gpu"
    devices = {row.name: 0 for row in rows}
    for row in rows:
        devices[row.name] += row.kind == unit and row.unusable is None
    return unit, devices


def _resources(record: ReservationRecord) -> ReservedResources:
    return ReservedResources(
        name=record.name,
        starts_us=record.starts_us,
        ends_us=record.ends_us,
        nodes=frozenset(record.nodes),
        gpus=record.gpus or 0,
    )


def list_reservations(db: Database, now: int, *, past: bool = False) -> list[sharing.Reservation]:
    """Return reservations that hold now or later, by their start; with `past`, all."""
    with db.read() as tx:
        return _present(tx, _all(tx) if past else to_come(tx, now), now)


def since(tx: Connection, since_us: int, now: int) -> list[sharing.Reservation]:
    """Return reservations that hold now or later or were held after a moment, by their start."""
    return _present(tx, to_come(tx, since_us), now)


def ever_since(tx: Connection, since_us: int, now: int) -> list[sharing.Reservation]:
    """Return reservations that were not over at a moment, cancelled ones too, by their start."""
    return _present(tx, [each for each in _all(tx) if each.ends_us > since_us], now)


def _all(tx: Connection) -> list[ReservationRecord]:
    query = select(Reservation.__table__).order_by(Reservation.starts_us, Reservation.id)
    return ReservationRecord.all(tx.execute(query))


def find(tx: Connection, id_: str) -> ReservationRecord:
    """Return a reservation by id; ``not-found`` for an unknown one."""
    found = ReservationRecord.first(tx.execute(select(Reservation.__table__).where(Reservation.id == id_)))
    if found is None:
        raise not_found("reservation", id_)
    return found


def cancel(db: Database, caller: Caller, id_: str, now: int) -> None:
    """Give back what is reserved; ``not-found`` for a reservation that is over."""
    own = (Reservation.id == id_, Reservation.cancelled_us.is_(None), Reservation.ends_us > now)
    with db.unit_of_work(now) as unit:
        if not unit.tx.execute(update(Reservation).where(*own).values(cancelled_us=now)).rowcount:
            raise not_found("reservation to come", id_)
        audit.record(unit.tx, caller, "reservation.cancel", id_, now, name=find(unit.tx, id_).name)
        unit.wake_scheduler()


def _present(tx: Connection, records: Sequence[ReservationRecord], now: int) -> list[sharing.Reservation]:
    names = {row.id: row.name for row in tx.execute(select(User.id, User.name))}
    return [
        sharing.Reservation(
            id=each.id,
            name=each.name,
            state=_state(each, now),
            users=[names[user] for user in each.users],
            projects=each.projects,
            maintenance=each.maintenance,
            nodes=each.nodes,
            gpus=each.gpus,
            starts_at=moment(each.starts_us),
            ends_at=moment(each.ends_us),
            created_by=names[each.created_by],
            created_at=moment(each.created_us),
            cancelled_at=None if each.cancelled_us is None else moment(each.cancelled_us),
        )
        for each in records
    ]


def _state(record: ReservationRecord, now: int) -> Literal["planned", "active", "over", "cancelled"]:
    if record.cancelled_us is not None:
        return "cancelled"
    if record.ends_us <= now:
        return "over"
    return "active" if record.starts_us <= now else "planned"
