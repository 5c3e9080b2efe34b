"""Devices over time as the REST API shows them: who has had them, has them, and is expected to get them."""

from datetime import datetime
from typing import Literal

from torchyard.api.base import Resource
from torchyard.api.nodes import IdleDevices
from torchyard.api.sharing import Reservation
from torchyard.states import AttemptState
from torchyard.wire import DeviceKind


class Timeline(Resource):
    """``GET /nodes/timeline``: allocations, forecasts and reservations of all devices."""

    #: From when on all allocations are told; later than was asked for where there are too many.
    since: datetime
    nodes: list["NodeTimeline"]
    #: All jobs that the nodes name, by number.
    jobs: list["TimelineJob"]
    #: Those that are not over, and those that were held since then.
    reservations: list[Reservation]
    #: Devices that no job has now, and why.
    idle: list[IdleDevices] = []


class NodeTimeline(Resource):
    """The devices of one node over time."""

    name: str
    state: Literal["online", "draining", "unreachable"]
    #: The reservation that it drains for.
    maintenance: str | None
    devices: list["DeviceTimeline"]


class DeviceTimeline(Resource):
    """One GPU or CPU slot over time."""

    uuid: str
    index: int
    kind: DeviceKind
    #: Why it must not be used.
    unusable: str | None
    #: By their beginning; those of jobs that share the device overlap.
    allocations: list["DeviceAllocation"]
    #: Numbers of waiting jobs that are expected to start on it.
    expected: list[int]


class DeviceAllocation(Resource):
    """A span of time in which an attempt has a device."""

    #: The job's number.
    job: int
    attempt: int
    #: None where the caller may not read the job.
    state: AttemptState | None
    starts_at: datetime
    #: None: it has the device still.
    ends_at: datetime | None
    #: Bytes of the device's memory, if it is shared; None: all of the device.
    share: int | None


class TimelineJob(Resource):
    """A job on the timeline. Of one that the caller may not read, only user, resources and times are told."""

    number: int
    name: str
    user: str
    #: Whether the caller may read the job; its name is not shown otherwise.
    readable: bool
    #: When a waiting job starts, and when a running or waiting one ends: in half of such cases, and in nine of ten.
    expected_start_at: datetime | None
    expected_start_p90_at: datetime | None
    expected_end_at: datetime | None
    expected_end_p90_at: datetime | None
