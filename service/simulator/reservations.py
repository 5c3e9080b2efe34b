"""Reservations and maintenances of a simulation.

A CSV file with the columns `start_time` and `end_time` (seconds, from the same beginning as the trace's) and, as
`yard reserve` has them, either `gpus` (a number, of any nodes) or `nodes` (whole ones, by their numbers from 0), and
`users` and `projects`, or else 1 in `maintenance`; several of a cell are set apart by semicolons. Optional are `name`,
and `made_time` and `cancel_time`: nobody knows of it before the one, and it holds no longer than to the other.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.scheduler.model.jobs import ReservationInfo
from service.scheduler.policy.maintenance import drains
from service.simulator import cells
from service.simulator.cells import MAX_SECONDS, Cells, shown
from service.simulator.exceptions import TraceError
from service.simulator.trace import Cluster

NEEDED = ("start_time", "end_time")
COLUMNS = (*NEEDED, "name", "nodes", "gpus", "users", "projects", "maintenance", "made_time", "cancel_time")


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceReservation:
    """A reservation or a maintenance, and from when to when the policy knows of it, in microseconds."""

    info: ReservationInfo
    #: None: from the beginning.
    made_us: int | None = None
    #: When it is over: at its end, or when it is cancelled.
    over_us: int

    def known(self, now_us: int) -> bool:
        """Return whether the policy knows of it."""
        return (self.made_us is None or self.made_us <= now_us) and now_us < self.over_us


def read(path: Path, cluster: Cluster) -> list[TraceReservation]:
    """Read reservations, by their starts; raises TraceError with file, line, column and how to correct it."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return parse(file, cluster)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path}: cannot be read as CSV: {error}") from error
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


def parse(file: Iterable[str], cluster: Cluster) -> list[TraceReservation]:
    """Parse the lines of a CSV file into reservations, by their starts; raises TraceError."""
    found = [_reservation(line, row, cluster) for line, row in cells.rows(file, NEEDED, COLUMNS)]
    return sorted(found, key=lambda one: one.info.starts_us)


def _reservation(line: int, row: Cells, cluster: Cluster) -> TraceReservation:
    start_us, end_us = (cells.seconds(line, name, row[name], least=-MAX_SECONDS) for name in NEEDED)
    if end_us <= start_us:
        raise TraceError(f"line {line}, end_time: {shown(row['end_time'])} is not later than start_time")
    made_us, cancelled_us = (
        cells.seconds(line, name, row[name], least=-MAX_SECONDS) if row[name] else None
        for name in ("made_time", "cancel_time")
    )
    users, projects = _several(row["users"]), _several(row["projects"])
    maintenance = cells.flag(line, "maintenance", row["maintenance"], default=False)
    if maintenance == bool(users or projects):
        raise TraceError(f"line {line}, users: name users or projects, or else write 1 in maintenance")
    if bool(row["nodes"]) == bool(row["gpus"]) or (maintenance and not row["nodes"]):
        mend = "name the nodes of the maintenance, without gpus" if maintenance else "give either gpus or nodes"
        raise TraceError(f"line {line}, nodes: {mend}")
    info = ReservationInfo(
        id=f"line {line}",
        name=row["name"] or f"line {line}",
        starts_us=start_us,
        ends_us=end_us,
        maintenance=maintenance,
        users=users,
        projects=projects,
        nodes=frozenset(_node(line, each, cluster.names()) for each in _several(row["nodes"])),
        gpus=_gpus(line, row["gpus"], cluster.total) if row["gpus"] else None,
    )
    over_us = end_us if cancelled_us is None else min(end_us, cancelled_us)
    return TraceReservation(info=info, made_us=made_us, over_us=over_us)


def _several(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(";"))))


def _node(line: int, text: str, names: Sequence[str]) -> str:
    if not text.isdecimal() or int(text) >= len(names):
        there = "0 alone" if len(names) == 1 else f"0 to {len(names) - 1}"
        raise TraceError(f"line {line}, nodes: there is no node {shown(text)}: there is {there} (--nodes)")
    return names[int(text)]


def _gpus(line: int, text: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise TraceError(f"line {line}, gpus: {shown(text)} is not a number of GPUs from 1 to {most}")
    return int(text)


class ReservationCalendar:
    """Reservations as time passes."""

    def __init__(self, reservations: Sequence[TraceReservation], lead_us: int) -> None:
        self._all, self._lead_us = reservations, lead_us
        moments = {at_us for one in reservations for at_us in self._moments(one)}
        #: Moments to come at which something changes, the last first.
        self._coming = sorted(moments, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def next_us(self) -> float:
        """Return when something changes next; infinite if nothing does."""
        return self._coming[-1] if self._coming else math.inf

    def pass_to(self, now_us: int) -> bool:
        """Let time pass to a moment, and return whether anything has changed by then."""
        before = len(self._coming)
        while self.next_us <= now_us:
            self._coming.pop()
        return len(self._coming) < before

    def known(self, now_us: int) -> tuple[ReservationInfo, ...]:
        """Return the reservations that the policy knows of."""
        return tuple(one.info for one in self._all if one.known(now_us))

    def drained(self, now_us: int) -> dict[str, str]:
        """Return the nodes that drain for a maintenance, with its id."""
        return drains(self.known(now_us), self._lead_us, now_us)

    def _moments(self, one: TraceReservation) -> list[int]:
        """Return when the policy hears of it, when jobs are stopped for it, when it begins and when it is over."""
        known_us = [] if one.made_us is None else [one.made_us]
        return [*known_us, one.info.starts_us - self._lead_us, one.info.starts_us, one.over_us]
