"""Models of the REST API about sharing the box: quotas, usage, reservations. Times are RFC 3339 UTC."""

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field

from torchyard.api.base import Resource, Text
from torchyard.api.identity import Role
from torchyard.quantities import Size
from torchyard.spec.base import NAME

AccountKind = Literal["user", "project"]
By = Literal["user", "project", "day"]
Name = Annotated[str, Field(pattern=f"^{NAME}$")]
Names = Annotated[tuple[Name, ...], Field(max_length=100)]


class Entitlement(Resource):
    """What of the GPUs a user or a project may have."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    weight: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)] | None = None
    """Its share of a full box, compared with the weights of the others; without one, 1."""
    max_gpus: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """GPUs at the same time; part of a shared GPU counts as a whole one."""
    max_gpu_hours: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    """GPU-hours in any seven days."""


class QuotaValues(Entitlement):
    """What a user or a project may have. Of ``PUT /quotas/…``: fields that are absent stay, null takes a value away."""

    max_queued: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    """Jobs that wait."""
    max_storage: Annotated[Size, Field(ge=0, lt=2**63)] | None = None
    """Bytes that its jobs hold in the store (checkpoints, files, logs); with so many, nothing more is taken."""


class Standing(Resource):
    """How somebody stands now."""

    #: In use; part of a shared GPU counts as a whole one, as it does for `max_gpus`.
    gpus: float
    #: Of the last seven days, with what runs; of a shared GPU, the part.
    gpu_hours: float
    queued: int
    #: Bytes of stored checkpoints, files and logs.
    storage: int = 0
    #: GPU-hours that still count against the share: halved every half-life of the policy.
    usage: float
    #: Part of all such usage, and the part that the weight stands for among those who want something now.
    used: float
    share: float


class Quota(Resource):
    """A user's or project's quotas; of the name ``*``, the values of everybody who has none of their own."""

    kind: AccountKind
    name: str
    own: QuotaValues
    #: What counts: the own value, else that of ``*``.
    effective: QuotaValues
    standing: Standing | None


class Hours(Resource):
    """GPU-hours by what became of them."""

    #: Work that counts.
    useful: float
    #: Held but not used: a job's start, and while the GPU was measured to do nothing.
    idle: float
    #: Work of attempts that failed and that nobody continues.
    failed: float
    #: Work done again after a preemption, a retry or a loss, and starting again.
    lost: float
    total: float


class UsageRow(Hours):
    #: A user, a project, or a day (UTC).
    of: str


class UsageReport(Resource):
    """``GET /usage``: from the first day to the last, both included."""

    since: date
    until: date
    by: By
    rows: list[UsageRow]
    total: Hours


class Waste(Resource):
    """GPU time of somebody's jobs that came to nothing, and the mend."""

    kind: Literal["idle", "failed", "lost"]
    user: str
    gpu_hours: float
    #: How many jobs, and the numbers of the worst.
    count: int
    jobs: list[int]
    message: str


class Digest(Resource):
    """``GET /usage/digest``: one week of the box."""

    #: ISO week, such as ``2026-W47``.
    week: str
    since: date
    until: date
    users: list[UsageRow]
    projects: list[UsageRow]
    total: Hours
    #: GPU-hours that there were, as far as the week has come, and the parts that were held and used well.
    capacity: float
    held: float | None
    useful: float | None
    #: Jobs that started for the first time, and how long they had waited.
    started: int
    mean_wait_s: float | None
    #: The biggest first.
    wastes: list[Waste]


class NewReservation(Resource):
    """``POST /reservations``: for users and projects, or `maintenance`; of whole nodes, or of a number of GPUs."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[Text, Field(min_length=1, max_length=100)]
    users: Names = ()
    """Whose jobs may use it."""
    projects: Names = ()
    """Projects whose jobs may use it."""
    maintenance: bool = False
    """Nobody's jobs may: the nodes drain before it begins and take jobs again when it ends."""
    nodes: Names = ()
    """Whole nodes; or else `gpus`."""
    gpus: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """So many GPUs of any nodes."""
    starts_at: AwareDatetime | None = None
    """With its time zone; absent: now."""
    ends_at: AwareDatetime
    """With its time zone."""


class Reservation(Resource):
    id: str
    name: str
    state: Literal["planned", "active", "over", "cancelled"]
    users: list[str]
    projects: list[str]
    maintenance: bool
    nodes: list[str]
    gpus: int | None
    starts_at: datetime
    ends_at: datetime
    created_by: str
    created_at: datetime


class UserChanges(Resource):
    """``PATCH /users/{name}``: fields that are absent stay as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    admin: bool = False
    """True is the role administrator. Taken away, it ends the user's tokens of the scope admin."""
    unix_user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")] | None = None
    """The account as which their jobs run where the worker runs as root; null takes it away."""
    active: bool = True
    """False ends all their tokens and sessions; their jobs and their usage stay."""
    role: Role = "member"
    """What they may do where no project says otherwise."""
