"""Plain data of the policy: jobs that wait and run, what they are entitled to, what is reserved.

Times are integer microseconds, sizes bytes.
"""

from dataclasses import dataclass
from enum import StrEnum

from service.scheduler.model.nodes import Placement, ResourceRequest


class EstimateSource(StrEnum):
    """Where an estimate comes from, the best first."""

    #: Known for certain, in simulations of policies that look into the future.
    ORACLE = "oracle"
    #: The job's own steps: so many done, so many to go.
    PROGRESS = "progress"
    #: Earlier jobs of the same user, project and recipe.
    HISTORY = "history"
    #: The time limit, which it can't pass.
    LIMIT = "limit"

    @property
    def own(self) -> bool:
        """Whether it tells of the job itself, and not of others like it."""
        return self is EstimateSource.PROGRESS or self is EstimateSource.ORACLE


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """How long a job will still run: of ten such jobs one is done by `p10_us`, five by `p50_us`, nine by `p90_us`."""

    p10_us: int
    p50_us: int
    p90_us: int
    source: EstimateSource
    #: When it was made; what a running job has run since is taken off. None: now.
    as_of_us: int | None = None


class IneligibleReason(StrEnum):
    """What keeps a job from being considered at all; quotas and caps are the policy's own."""

    HELD = "held"
    #: It waits for jobs that its `after` names.
    DEPENDENCY = "dependency"
    #: Its last attempt's checkpoint is on the way to the store: starting now would lose that work.
    SAVING = "saving"
    #: What is not its own fault has ended it again: it rests before the next try.
    RESTING = "resting"
    #: Its sweep is paused.
    PAUSED = "paused"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobInfo:
    """What waiting and running jobs have in common."""

    job: str
    number: int
    #: Keys of `State.users` and `State.projects`.
    user: str
    project: str
    #: Rank of the priority class: 0 is the lowest.
    priority: int
    #: What it needs of each of its nodes.
    resources: ResourceRequest
    nodes: int = 1
    #: Its sweep.
    group: str | None = None
    #: Since when it could have started: its age, which attempts that end do not renew.
    eligible_us: int = 0
    #: How long its earlier attempts ran.
    ran_us: int = 0
    limit_us: int | None = None
    #: Running time still to come; None as long as nothing is known.
    remaining: Estimate | None = None
    #: It may be stopped in favour of others and go on later (once it runs: now).
    preemptible: bool = False
    #: It never may, its owner said: so it takes no time slices from others either, which it would keep.
    pinned: bool = False

    @property
    def gpus(self) -> int:
        """GPUs on all its nodes; a shared one counts as one."""
        return self.nodes * self.resources.gpus


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting(JobInfo):
    """A queued job."""

    ineligible: IneligibleReason | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Running(JobInfo):
    """A job that holds its places, from the moment they are given to it until they are free again."""

    placements: tuple[Placement, ...]
    #: When its attempt was given its devices.
    since_us: int
    #: When its time limit ends it at the latest.
    ends_us: int | None = None
    #: When its newest verified checkpoint was written: what it did since would be lost if stopping it went wrong. None
    #: before the first.
    saved_us: int | None = None
    #: It can be stopped, but has nothing to go on from: all that it did would be lost.
    starts_over: bool = False
    #: It must not be chosen for a preemption before.
    spared_until_us: int = 0
    #: The job or reservation that its places go to: it is being checkpointed and stopped for it.
    preempted_for: str | None = None
    #: When it was asked to give them up, and when its checkpoint is due at the latest; 0 if it was not.
    asked_us: int = 0
    due_us: int = 0
    #: It is being stopped already, for whatever reason.
    stops: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantAccount:
    """What a user or project is entitled to, and has had."""

    weight: float = 1.0
    #: GPU-seconds of attempts that have ended, halved every half-life, as of `usage_us`.
    usage: float = 0.0
    usage_us: int = 0
    max_gpus: int | None = None
    #: GPU time left of this week's quota before anything that runs now is counted; None without a quota.
    week_left_us: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether it has a quota."""
        return self.max_gpus is not None or self.week_left_us is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservationInfo:
    """Devices kept for users or projects, or nodes taken out of use, from `starts_us` to `ends_us`."""

    id: str
    name: str
    starts_us: int
    ends_us: int
    #: Nobody's jobs may be there.
    maintenance: bool = False
    users: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    #: Empty: any node.
    nodes: frozenset[str] = frozenset()
    #: None: all of the nodes.
    gpus: int | None = None
