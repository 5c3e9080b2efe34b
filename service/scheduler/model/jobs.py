"""Plain data of the policy: jobs that wait and run, what they are entitled to, what is reserved.

Times are integer microseconds, sizes bytes.
"""

from dataclasses import dataclass
from enum import StrEnum

from service.scheduler.model.nodes import Placement, ResourceRequest
from torchyard.ids import JobId


class EstimateSource(StrEnum):
    """Source of an estimate, the best first."""

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
        """Return whether the estimate is of the job itself, not derived from similar jobs or its limit."""
        return self is EstimateSource.PROGRESS or self is EstimateSource.ORACLE


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Remaining running time of a job: of ten such jobs one is done by `p10_us`, five by `p50_us`, nine by `p90_us`."""

    p10_us: int
    p50_us: int
    p90_us: int
    source: EstimateSource
    #: When it was made; what a running job has run since is taken off. None: now.
    as_of_us: int | None = None


class IneligibleReason(StrEnum):
    """Reason for which a queued job is not considered at all; quotas and caps are left to the policy."""

    HELD = "held"
    #: It waits for jobs that its `after` names.
    DEPENDENCY = "dependency"
    #: Its last attempt's checkpoint is on the way to the store: starting now would lose that work.
    SAVING = "saving"
    #: It was ended again by a failure that is not its own: it waits a while before the next attempt.
    RESTING = "resting"
    #: A secret that it names does not exist any more.
    SECRET = "secret"  # noqa: S105
    #: Its sweep is paused.
    PAUSED = "paused"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobInfo:
    """Fields that waiting and running jobs share."""

    job: JobId
    number: int
    #: Keys of `SchedulerState.users` and `SchedulerState.projects`.
    user: str
    project: str
    #: Rank of the priority class: 0 is the lowest.
    priority: int
    #: What it needs of each of its nodes.
    resources: ResourceRequest
    nodes: int = 1
    #: Its sweep.
    group: str | None = None
    #: Since when it could have started. Its age counts from then; an attempt that ends does not reset it.
    eligible_us: int = 0
    #: How long its earlier attempts ran.
    ran_us: int = 0
    limit_us: int | None = None
    #: Running time still to come; None as long as nothing is known.
    remaining: Estimate | None = None
    #: It may be stopped in favour of others and go on later (once it runs: now).
    preemptible: bool = False
    #: Its owner forbids stopping it; so it takes no time slices from others either, since it would keep them.
    pinned: bool = False
    #: It may be put back after its trial and started from the beginning, as long as it cannot be stopped otherwise.
    restartable: bool = False
    #: The built-in trainer runs it, which saves by itself.
    recipe: bool = False

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
    """A job that holds devices, from the moment they are allocated to it until they are free again."""

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
    #: Its spec, its project and the policy let it be put back, whether or not it has a trial left.
    restarts_allowed: bool = False
    #: When its trial began: at its first step.
    begun_us: int = 0
    #: End of its trial: until then a job that would start over may be stopped for a shorter one.
    trial_ends_us: int = 0
    #: Until then it must not be chosen for a preemption.
    spared_until_us: int = 0
    #: The job or reservation that it is being checkpointed and stopped for, and that gets its devices.
    preempted_for: str | None = None
    #: When its preemption was requested, and when its checkpoint is due at the latest; 0 if none was requested.
    asked_us: int = 0
    due_us: int = 0
    #: It is being stopped already, for whatever reason.
    stops: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantAccount:
    """Share, usage and quotas of a user or project."""

    weight: float = 1.0
    #: GPU-seconds of attempts that have ended, halved every half-life, as of `usage_us`.
    usage: float = 0.0
    usage_us: int = 0
    max_gpus: int | None = None
    #: GPU time left of this week's quota before anything that runs now is counted; None without a quota.
    week_left_us: int | None = None

    @property
    def bounded(self) -> bool:
        """Return whether the account has a quota."""
        return self.max_gpus is not None or self.week_left_us is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservationInfo:
    """Devices kept for users or projects, or nodes taken out of use, from `starts_us` to `ends_us`."""

    id: str
    name: str
    starts_us: int
    ends_us: int
    #: No jobs may run there.
    maintenance: bool = False
    users: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    #: Empty: any node.
    nodes: frozenset[str] = frozenset()
    #: None: all of the nodes.
    gpus: int | None = None
