"""Models of the REST API about sharing the box: quotas, usage, reservations. Times are RFC 3339 UTC."""

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field

from torchyard.api.base import Resource, Text
from torchyard.api.identity import Role
from torchyard.numbers import INT64
from torchyard.quantities import Size
from torchyard.spec.base import NAME
from torchyard.spec.policy import Policy

AccountKind = Literal["user", "project"]
By = Literal["user", "project", "day"]
Name = Annotated[str, Field(pattern=f"^{NAME}$")]
Names = Annotated[tuple[Name, ...], Field(max_length=100)]


class Entitlement(Resource):
    """The GPUs that a user or a project may have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)] | None = None
    """Its share of a full box, compared with the weights of the others; without one, 1."""
    max_gpus: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """GPUs at the same time; part of a shared GPU counts as a whole one."""
    max_gpu_hours: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    """GPU-hours in any seven days."""


class QuotaValues(Entitlement):
    """The limits of a user or a project. Of ``PUT /quotas/…``: fields that are absent stay, null takes a value away."""

    max_queued: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    """Jobs that wait."""
    max_storage: Annotated[Size, Field(ge=0, lt=INT64.stop)] | None = None
    """Bytes that its jobs hold in the store (checkpoints, files, logs, code); with so many, nothing more is taken."""


class Standing(Resource):
    """The present standing of a user or a project."""

    gpus: float
    """GPUs in use; part of a shared GPU counts as a whole one, as it does for `max_gpus`."""
    gpu_hours: float
    """GPU-hours of the last seven days, with what runs; of a shared GPU, the part."""
    queued: int
    """Jobs that wait."""
    storage: int = 0
    """Bytes of stored checkpoints, files, logs and code."""
    code: int = 0
    """Bytes of snapshots of code in it, each counted once."""
    usage: float
    """GPU-hours that still count against the share: halved every half-life of the policy."""
    used: float
    """Share of all such usage."""
    share: float
    """Share that the weight stands for among those who want something now."""


class Quota(Resource):
    """A user's or project's quotas; of the name ``*``, the values of everybody who has none of their own."""

    kind: AccountKind
    """Whether it is of a user or a project."""
    name: str
    """Name of the user or project; ``*``: everybody's default."""
    own: QuotaValues
    """Values of its own."""
    effective: QuotaValues
    """What counts: the own value, else that of ``*``."""
    standing: Standing | None
    """How it stands now; null of ``*``."""


class Hours(Resource):
    """GPU-hours by what became of them."""

    useful: float
    """Work that counts."""
    idle: float
    """Held but not used: a job's start, and while the GPU was measured to do nothing."""
    failed: float
    """Work of attempts that failed and that nobody continues."""
    lost: float
    """Work done again after a preemption, a retry or a loss, and starting again."""
    total: float
    """All of these."""
    stoppable: float = 0
    """Of the total, what could have been shared: held by jobs that could be stopped for others and go on later."""


class UsageRow(Hours):
    of: str
    """A user, a project, or a day (UTC)."""


class UsageReport(Resource):
    """``GET /usage``: from the first day to the last, both included."""

    since: date
    """The first day (UTC)."""
    until: date
    """The last day (UTC), included."""
    by: By
    """What the rows are by."""
    rows: list[UsageRow]
    """One for each user, project or day."""
    total: Hours
    """All rows together."""


class Waste(Resource):
    """GPU time of somebody's jobs that came to nothing, and the mend."""

    kind: Literal["idle", "failed", "lost"]
    """What came of the time: it was idle, or its work failed or was lost."""
    user: str
    """Owner of the jobs."""
    gpu_hours: float
    """GPU-hours that came to nothing."""
    count: int
    """How many jobs."""
    jobs: list[int]
    """Numbers of the worst of them."""
    message: str
    """What happened, and the mend."""


class Digest(Resource):
    """``GET /usage/digest``: one week of the box."""

    week: str
    """ISO week, such as ``2026-W47``."""
    since: date
    """Its first day (UTC)."""
    until: date
    """Its last day (UTC), included."""
    users: list[UsageRow]
    """GPU-hours of each user."""
    projects: list[UsageRow]
    """GPU-hours of each project."""
    total: Hours
    """GPU-hours of all."""
    capacity: float
    """GPU-hours that there were, as far as the week has come."""
    held: float | None
    """Share of them that jobs held; null: there were none."""
    useful: float | None
    """Share of them that was used well; null: there were none."""
    started: int
    """Jobs that started for the first time."""
    mean_wait_s: float | None
    """Seconds that those had waited on average; null: none started."""
    wastes: list[Waste]
    """The biggest first."""


class WhatIf(Resource):
    """``POST /policy/what-if``: a policy that is to be tried on the jobs that came lately and have ended."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: Policy
    """The policy to try; fields that are absent get their defaults."""
    weeks: Annotated[int, Field(ge=1, le=26)] = 4
    """Jobs that came in so many weeks."""


class PolicyOutcome(Resource):
    """The outcome of a policy."""

    mean_wait_s: float
    """Seconds that jobs waited on average."""
    mean_jct_s: float
    """Seconds from submission to end on average."""
    p99_jct_s: float
    """The same of the slowest in a hundred."""
    utilization: float
    """Part of the GPU time that jobs held."""
    avoidable_idle: float
    """Part of the GPU time that was unused while a waiting job would have fitted."""
    kept_idle: float
    """The same, but on GPUs that were held for a blocked or an overdue job."""
    reserved_idle: float = 0.0
    """The same, but on GPUs that were reserved for others, or on a node that drained for a maintenance."""
    jain: float
    """Jain's index of fairness over users, at most 1."""
    preemptions: int
    """How often a job was stopped for another."""
    restarts: int
    """How often a job was put back, to start from the beginning."""


class UserOutcome(Resource):
    """The outcome of both policies for the jobs of one user."""

    user: str
    """Owner of the jobs."""
    jobs: int
    """How many jobs."""
    mean_wait_before_s: float
    """Seconds that they waited on average with the policy that holds."""
    mean_wait_after_s: float
    """The same with the policy that was asked about."""


class WhatIfAnswer(Resource):
    """The outcome of the policy that holds and of the one that was asked about."""

    jobs: int
    """Jobs that were played."""
    left_out: int
    """Jobs that no longer fit on the nodes that there are."""
    nodes: int
    """Nodes, taken to be alike."""
    gpus: int
    """GPUs or CPU slots of each node."""
    before: PolicyOutcome
    """With the policy that holds."""
    after: PolicyOutcome
    """With the policy that was asked about."""
    users: list[UserOutcome]
    """By name."""


class NewReservation(Resource):
    """``POST /reservations``: for users and projects, or `maintenance`; of whole nodes, or of a number of GPUs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[Text, Field(min_length=1, max_length=100)]
    """What it is for."""
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
    """Its id."""
    name: str
    """What it is for."""
    state: Literal["planned", "active", "over", "cancelled"]
    """Whether it holds now."""
    users: list[str]
    """Whose jobs may use it."""
    projects: list[str]
    """Projects whose jobs may use it."""
    maintenance: bool
    """Whether nobody's jobs may: the nodes drain."""
    nodes: list[str]
    """Whole nodes that are kept."""
    gpus: int | None
    """GPUs that are kept, of any nodes; null: whole nodes are."""
    starts_at: datetime
    """When it begins."""
    ends_at: datetime
    """When it ends."""
    created_by: str
    """Who made it."""
    created_at: datetime
    """When it was made."""
    cancelled_at: datetime | None = None
    """When it was cancelled; null: it was not."""


class UserChanges(Resource):
    """``PATCH /users/{name}``: fields that are absent stay as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    admin: bool = False
    """True is the role administrator. Taken away, it ends the user's tokens of the scope admin."""
    unix_user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")] | None = None
    """The account as which their jobs run where the worker runs as root; null takes it away."""
    active: bool = True
    """False ends all their tokens and sessions; their jobs and their usage stay."""
    role: Role = "member"
    """What they may do where no project says otherwise."""
