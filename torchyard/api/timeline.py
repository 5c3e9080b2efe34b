"""Devices over time as the REST API shows them: who has had them, has them, and is expected to get them."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from torchyard.api.base import Resource
from torchyard.api.nodes import IdleDevices
from torchyard.api.sharing import Reservation
from torchyard.states import AttemptState
from torchyard.wire import DeviceKind, Finding


class Timeline(Resource):
    """``GET /nodes/timeline``: allocations, forecasts and reservations of all devices."""

    since: datetime
    """From when on all allocations are told; later than was asked for where there are too many."""
    nodes: list["NodeTimeline"]
    """The nodes, by name."""
    jobs: list["TimelineJob"]
    """All jobs that the nodes name, by number."""
    reservations: list[Reservation]
    """Those that are not over, and those that were held since then."""
    idle: list[IdleDevices] = []
    """Devices that no job has now, and why."""


class NodeTimeline(Resource):
    """The devices of one node over time."""

    name: str
    """Name of the node."""
    state: Literal["online", "draining", "unreachable"]
    """Whether it takes jobs."""
    maintenance: str | None
    """The reservation that it drains for."""
    devices: list["DeviceTimeline"]
    """Its devices."""
    outages: list["Outage"] = []
    """When the whole node was given to no new job, by their beginning."""


class DeviceTimeline(Resource):
    """One GPU or CPU slot over time."""

    uuid: str
    """UUID of the device."""
    index: int
    """Its index on the node."""
    kind: DeviceKind
    """Whether it is a GPU or a CPU slot."""
    unusable: str | None
    """Why it must not be used."""
    finding: Finding | None = None
    """What that is made of, for words in another language; null where it is not known."""
    allocations: list["DeviceAllocation"]
    """By their beginning; those of jobs that share the device overlap."""
    expected: list[int]
    """Numbers of waiting jobs that are expected to start on it."""
    outages: list["Outage"] = []
    """When it was in quarantine, by their beginning; those of its whole node are told there."""


class OutageKind(StrEnum):
    """Why a device, or a whole node, is given to no new job."""

    #: The device's driver has told of a fault, or job after job has failed by it; an administrator returns it.
    QUARANTINE = "quarantine"
    #: An administrator drains the node.
    DRAIN = "drain"
    #: The node drains for a maintenance.
    MAINTENANCE = "maintenance"
    #: The node is not heard of.
    UNREACHABLE = "unreachable"


class Outage(Resource):
    """A span of time in which a device, or a whole node, is given to no new job."""

    kind: OutageKind
    """Why."""
    reason: str
    """The fault with its mend, the drain's message, or the maintenance's name; empty where none was given."""
    finding: Finding | None = None
    """What a fault is made of, for words in another language; null where it is not known, and of other outages."""
    starts_at: datetime
    """When it began."""
    ends_at: datetime | None
    """When it ended; null: it holds still."""


class DeviceAllocation(Resource):
    """A span of time in which an attempt has a device."""

    job: int
    """The job's number."""
    attempt: int
    """The attempt's number."""
    state: AttemptState | None
    """null where the caller may not read the job."""
    starts_at: datetime
    """When it was given the device."""
    ends_at: datetime | None
    """null: it has the device still."""
    share: int | None
    """Bytes of the device's memory, if it is shared; null: all of the device."""


class TimelineJob(Resource):
    """A job on the timeline. Of one that the caller may not read, only user, resources and times are told."""

    number: int
    """Its number."""
    name: str
    """Its name; empty where the caller may not read it."""
    user: str
    """Its owner."""
    readable: bool
    """Whether the caller may read the job; its name is not shown otherwise."""
    expected_start_at: datetime | None
    """When it starts, in half of such cases; null: it has, or that cannot be told."""
    expected_start_p90_at: datetime | None
    """When it starts, in nine of ten such cases."""
    expected_end_at: datetime | None
    """When it ends, in half of such cases."""
    expected_end_p90_at: datetime | None
    """When it ends, in nine of ten such cases."""


class Utilization(Resource):
    """``GET /nodes/utilization``: how busy all devices were, in buckets of equal length."""

    since: datetime
    """Beginning of the first bucket."""
    bucket_s: int
    """Seconds of a bucket."""
    devices: list["DeviceUtilization"]
    """All devices, by node and index."""


class DeviceUtilization(Resource):
    """Use of one device over time, in percent: the mean of a few samples of each bucket; null where there is none."""

    node: str
    """Name of its node."""
    uuid: str
    """UUID of the device."""
    of_node: bool
    """Of a CPU slot: these are the processors and the main memory of the whole node."""
    utilization: list[int | None]
    """Percent of the time in which the GPU computed, or of the node's processors."""
    memory: list[int | None]
    """Percent of the memory that was held."""
