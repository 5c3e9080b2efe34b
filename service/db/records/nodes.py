"""Records of nodes, their devices and reservations."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import field_validator

from service.db.records.record import Record
from torchyard import wire


class StoredTopology(wire.Topology):
    """Distances of a GPU to the node's others; levels that this version does not know are left out."""

    @field_validator("links", mode="before")
    @classmethod
    def _known(cls, links: Mapping[str, str]) -> dict[str, str]:
        levels = set(wire.LinkLevel)
        return {uuid: level for uuid, level in links.items() if level in levels}


@dataclass(frozen=True, slots=True)
class NodeRecord(Record):
    """A row of `nodes`, whole."""

    name: str
    node_id: str
    home_id: str
    boot_id: str
    pid_namespace: str
    hostname: str
    version: str
    runs_as_root: bool
    draining: bool
    drain_message: str | None
    maintenance: str | None
    unreachable: bool
    cpus: int
    memory: int
    disk_free: int
    disk_floor: int | None
    held_us: dict[str, int] | None
    offenders: list[str]
    offender_findings: tuple[wire.Finding, ...] | None
    labels: list[str] | None
    capabilities: list[str] | None
    unenforced: str | None
    unenforced_finding: wire.Finding | None
    accounts: dict[str, bool] | None
    beat: int
    last_seen_us: int | None
    registered_us: int


@dataclass(frozen=True, slots=True)
class DeviceRecord(Record):
    """A row of `devices`, whole."""

    node: str
    uuid: str
    index: int
    kind: wire.DeviceKind
    name: str
    memory: int
    unusable: str | None
    reported_unusable: str | None
    fault: str | None
    acknowledged: str | None
    foreign_memory: int | None
    present: bool
    topology: wire.Topology | None
    findings: tuple[wire.Finding, ...] | None

    @property
    def finding(self) -> wire.Finding | None:
        """The finding that `unusable` is the message of, as far as that is known."""
        return wire.Finding.with_message(self.unusable, self.findings or ())

    def device(self) -> wire.Device:
        """Return the device as its node reports it."""
        return wire.Device(
            uuid=self.uuid,
            index=self.index,
            kind=self.kind,
            name=self.name,
            memory=self.memory,
            unusable=self.unusable,
            fault=self.fault,
            foreign_memory=self.foreign_memory,
            topology=self.topology,
            findings=self.findings or (),
        )


@dataclass(frozen=True, slots=True)
class ReservationRecord(Record):
    """A row of `reservations`, whole; users by id."""

    id: str
    name: str
    maintenance: bool
    users: list[str]
    projects: list[str]
    nodes: list[str]
    gpus: int | None
    starts_us: int
    ends_us: int
    created_by: str
    created_us: int
    cancelled_us: int | None
