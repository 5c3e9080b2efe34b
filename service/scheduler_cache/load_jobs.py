"""Loading of the policy's jobs from the database."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple, cast

from sqlalchemy import BindParameter, Connection, Select, Table, bindparam, func, select

from service.db.chunks import chunks
from service.db.models import Allocation, Attempt, Checkpoint, Job, Member, Node, Project
from service.db.records.attempts import PendingPreemption
from service.db.records.spec import StoredSpec
from service.estimation import progress
from service.scheduler.model.jobs import Estimate, IneligibleReason, Running, Waiting
from service.scheduler.model.nodes import Placement, ResourceRequest
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy import trials
from service.scheduler.policy.trials import on_trial
from torchyard.ids import AttemptId, JobId, parse_job_id
from torchyard.spec import JobSpec
from torchyard.spec.policy import Policy
from torchyard.spec.restarts import may_be_put_back, restarts_allowed
from torchyard.states import JOB_FINAL, JOB_HOLDS_GPUS, AttemptState, JobState

#: A job waits at most this long for its last attempt's checkpoints to be stored.
SAVING_US = 600 * 1_000_000
#: No job rests longer before it is tried again.
RESTING_US = 600 * 1_000_000

_JOB = cast("Table", Job.__table__).c
_ATTEMPT = cast("Table", Attempt.__table__).c
_MEMBER = cast("Table", Member.__table__).c
_ALLOCATION = cast("Table", Allocation.__table__).c
_CHECKPOINT = cast("Table", Checkpoint.__table__).c
_ALIVE = [state for state in JobState if state not in JOB_FINAL]

#: Enough to see that a job has changed, and that it is over.
_HEAD = (_JOB.id, _JOB.last_event, _JOB.state)
CHANGED: Select[Any] = select(*_HEAD).where(_JOB.changed_us >= bindparam("since"))
ALIVE: Select[Any] = select(*_HEAD).where(_JOB.state.in_(_ALIVE))


class LoadedJob(NamedTuple):
    """Columns of a job that the scheduler's model and its estimates need; a plain tuple, since queues are long."""

    spec: StoredSpec
    id: JobId
    last_event: int
    number: int
    user_id: str
    project: str
    state: str
    held: bool
    blocked: bool
    stop: str | None
    priority: int
    attempt: int
    total_steps: int | None
    restore_checkpoint: str | None
    queued_us: int
    retry_us: int | None
    eligible_us: int
    ran_us: int
    group_id: str | None
    restarts: int
    #: Its project lets jobs be put back.
    project_restarts: bool

    def restartable(self, policy: Policy) -> bool:
        """Return whether it may be put back after its trial."""
        return may_be_put_back(
            self.spec.restart_permission,
            self.project,
            policy,
            attempts=self.attempt if self.state == JobState.QUEUED else self.attempt - 1,
            restarts=self.restarts,
            project_restarts=self.project_restarts,
        )

    def restarts_allowed(self, policy: Policy) -> bool:
        """Return whether it may be put back as long as it has a trial left."""
        permission, allowed = self.spec.restart_permission, self.project_restarts
        return restarts_allowed(permission, self.project, policy, project_restarts=allowed)


class RestartRules(NamedTuple):
    """The number of times that a job may be put back, and the projects whose jobs may not."""

    most: int
    forbidden: frozenset[str]


_NO_RESTARTS: Select[Any] = select(Project.name).where(~Project.restarts)


def restart_rules(tx: Connection, policy: Policy) -> RestartRules:
    """Return the rules that hold now."""
    return RestartRules(policy.restarts, frozenset(tx.scalars(_NO_RESTARTS)) | frozenset(policy.no_restarts))


class _LoadedAttempt(NamedTuple):
    id: AttemptId
    job_id: JobId
    created_us: int
    started_us: int | None
    resumed_from_step: int | None
    yielding: Mapping[str, Any] | None
    spared_until_us: int | None


_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_JOBS: Select[Any] = (
    select(
        *(_JOB[name] for name in LoadedJob._fields if name != "project_restarts"),
        Project.restarts.label("project_restarts"),
    )
    .join_from(_JOB.id.table, Project, Project.name == _JOB.project)
    .where(_JOB.id.in_(_IDS))
)


def resources_of(spec: JobSpec) -> ResourceRequest:
    """Return the resources that a job asks of a node.

    Without GPUs it counts as at least one core, so that such jobs have a bound too.
    """
    backend = None if spec.recipe is None else spec.recipe.backend
    asked = (getattr(spec.resources, name) for name in _ASKED)
    return _resources(backend == _GPU_BACKEND, spec.isolated, bool(spec.secrets), not spec.warm_start, *asked)


#: The backend whose ranks need a GPU each.
_GPU_BACKEND = "nccl"
#: What of a job's resources makes its shape.
_ASKED = ("gpus", "gpu_memory_min", "gpu_share", "gpu_type", "labels", "cpus", "memory")


@lru_cache(maxsize=4096)
def _resources(
    gpus_alone: bool,
    isolated: bool,
    secrets: bool,
    cold: bool,
    gpus: int | None,
    gpu_memory_min: int | None,
    gpu_share: int | None,
    gpu_type: str | None,
    labels: tuple[str, ...] | None,
    cpus: int | None,
    memory: int | None,
) -> ResourceRequest:
    """One object for all jobs that ask for the same; what a spec of an earlier version does not know is None."""
    gpus = 1 if gpus is None else gpus
    return ResourceRequest(
        gpus=gpus,
        gpu_memory_min=gpu_memory_min or 0,
        gpu_share=gpu_share or 0,
        gpu_type=(gpu_type or "").lower(),
        gpus_alone=gpus_alone,
        isolated=isolated,
        secrets=secrets,
        cold=cold,
        labels=frozenset(labels or ()),
        cpus=cpus or (0 if gpus else 1),
        memory=memory or 0,
    )


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def load(tx: Connection, jobs: Sequence[JobId]) -> list[LoadedJob]:
    """Load these jobs, in no order."""
    rows = (row for some in chunks(jobs) for row in tx.execute(_JOBS, {"ids": some}))
    return [_shared(LoadedJob(StoredSpec(spec), *columns)) for spec, *columns in rows]


def _shared(row: LoadedJob) -> LoadedJob:
    """Return the row with one text for all jobs of a user, project or sweep: each row comes with its own."""
    group = row.group_id
    return row._replace(
        user_id=intern(row.user_id), project=intern(row.project), group_id=group if group is None else intern(group)
    )


def waiting(row: LoadedJob, remaining: Estimate | None, policy: Policy) -> Waiting:
    """Make a queued job; that its sweep is paused or its checkpoints are on the way is not known from its row."""
    return Waiting(
        **_common(row),
        remaining=remaining,
        restartable=row.restartable(policy),
        preemptible=row.spec.stoppable(saves=row.restore_checkpoint is not None),
        ineligible=IneligibleReason.HELD if row.held else IneligibleReason.DEPENDENCY if row.blocked else None,
    )


def running(
    tx: Connection, rows: Sequence[LoadedJob], remaining: Mapping[JobId, Estimate], policy: Policy, now: int
) -> list[Running]:
    """Make jobs that hold devices."""
    ids = [row.id for row in rows]
    newest = (_LoadedAttempt._make(each) for some in chunks(ids) for each in tx.execute(_NEWEST, {"ids": some}))
    attempts = {attempt.job_id: attempt for attempt in newest}
    live = [attempt.id for attempt in attempts.values()]
    placements, saved = _placements(tx, live), _saved(tx, ids)
    made = [
        _running(row, attempts[row.id], placements.get(attempts[row.id].id, ()), saved, policy)
        for row in rows
        if row.id in attempts
    ]
    tried = [attempts[job.job].id for job in made if on_trial(job, now)]
    begun = progress.first_steps(tx, tried) if tried else {}
    return [_with(_begun(job, attempts[job.job], begun, policy), remaining.get(job.job), now) for job in made]


def _begun(job: Running, attempt: _LoadedAttempt, begun: Mapping[AttemptId, int], policy: Policy) -> Running:
    """Return the job with its trial counted from its first step, if it has made one."""
    if attempt.id not in begun or attempt.started_us is None:
        return job
    begun_us, ends_us = trials.begun(attempt.started_us, begun[attempt.id], policy)
    return replace(job, begun_us=begun_us, trial_ends_us=ends_us)


def _with(job: Running, remaining: Estimate | None, now: int) -> Running:
    return job if remaining is None else replace(job, remaining=replace(remaining, as_of_us=now))


def estimate(state: SchedulerState, remaining: Mapping[JobId, Estimate], now: int) -> None:
    """Tell the state the time that its running jobs have left."""
    known = [job for job in state.running.values() if job.job in remaining]
    state.put([_with(job, remaining[job.job], now) for job in known])


def tried(state: SchedulerState, now: int) -> list[JobId]:
    """Return the running jobs that are on trial: what is decided of them depends on what they tell by now."""
    return [job.job for job in state.running.values() if on_trial(job, now)]


_PENDING: Select[Any] = select(_ATTEMPT.yielding).where(
    _ATTEMPT.state == AttemptState.PREEMPTED,
    _ATTEMPT.yielding.is_not(None),
    _ATTEMPT.ended_us > bindparam("since_us"),
)


def promised(tx: Connection, now: int) -> list[JobId]:
    """Return the jobs that others have been stopped for lately; whether they still wait is not asked."""
    rows = tx.scalars(_PENDING, {"since_us": now - SAVING_US})
    stored = (PendingPreemption.model_validate(each) for each in rows)
    return sorted({job for each in stored if (job := parse_job_id(each.preemptor)) is not None})


def _common(row: LoadedJob) -> dict[str, Any]:
    # Stored specs were checked when they came. One that today's rules would refuse must not stop the whole queue.
    spec, resources = row.spec, row.spec.resources
    return {
        "job": row.id,
        "number": row.number,
        "user": row.user_id,
        "project": row.project,
        "priority": row.priority,
        "resources": _resources(
            spec.backend == _GPU_BACKEND,
            spec.isolated,
            bool(spec.secrets),
            spec.cold,
            *map(_plain, map(resources.get, _ASKED)),
        ),
        "nodes": spec.nodes,
        "group": row.group_id,
        "eligible_us": row.eligible_us,
        "ran_us": row.ran_us,
        "limit_us": spec.time_limit_us,
        "pinned": spec.preemptible is False,
        "recipe": spec.recipe is not None,
    }


def _running(
    row: LoadedJob,
    attempt: _LoadedAttempt,
    placements: Sequence[Placement],
    saved: Mapping[JobId, tuple[str, int]],
    policy: Policy,
) -> Running:
    common = _common(row)
    wrote, created_us = saved.get(row.id, ("", None))
    resumed_us = attempt.started_us or attempt.created_us if attempt.resumed_from_step is not None else None
    limit_us = common["limit_us"]
    runs = row.state == JobState.RUNNING and not row.stop
    nothing = row.id not in saved and resumed_us is None
    restartable = nothing and row.restartable(policy)
    begun_us = trial_ends_us = 0
    if runs and restartable and attempt.started_us is not None:
        begun_us, trial_ends_us = trials.begun(attempt.started_us, None, policy)
    pending = None if attempt.yielding is None else PendingPreemption.model_validate(attempt.yielding)
    return Running(
        **common,
        preemptible=runs and row.spec.stoppable(saves=row.id in saved),
        restartable=restartable,
        begun_us=begun_us,
        trial_ends_us=trial_ends_us,
        placements=tuple(placements),
        since_us=attempt.created_us,
        ends_us=attempt.started_us + limit_us if attempt.started_us and limit_us else None,
        saved_us=created_us if wrote == attempt.id else resumed_us,
        starts_over=nothing and (restartable or row.spec.restartable),
        restarts_allowed=row.restarts_allowed(policy),
        spared_until_us=attempt.spared_until_us or 0,
        preempted_for=pending.preemptor if pending else None,
        asked_us=pending.asked_us if pending else 0,
        due_us=pending.deadline_us if pending else 0,
        stops=row.state == JobState.STOPPING or row.stop is not None,
    )


_NEWEST: Select[Any] = (
    select(*(_ATTEMPT[name] for name in _LoadedAttempt._fields))
    .join_from(_ATTEMPT.id.table, _JOB.id.table, (_JOB.id == _ATTEMPT.job_id) & (_JOB.attempt == _ATTEMPT.number))
    .where(_JOB.id.in_(_IDS), _JOB.state.in_(list(JOB_HOLDS_GPUS)))
)


_HELD: Select[Any] = select(_ALLOCATION.attempt_id, _ALLOCATION.node, _ALLOCATION.uuid).where(
    _ALLOCATION.live, _ALLOCATION.attempt_id.in_(_IDS)
)
_MEMBERS: Select[Any] = (
    select(_MEMBER.attempt_id, _MEMBER.node)
    .where(_MEMBER.ended_us.is_(None), _MEMBER.attempt_id.in_(_IDS))
    .order_by(_MEMBER.node_rank)
)


def _placements(tx: Connection, attempts: Sequence[AttemptId]) -> dict[AttemptId, list[Placement]]:
    """Return the devices that each attempt holds; a part of it that has ended holds nothing any more."""
    held: dict[tuple[AttemptId, str], list[str]] = {}
    placements: dict[AttemptId, list[Placement]] = {}
    for some in chunks(attempts):
        for attempt, node, uuid in tx.execute(_HELD, {"ids": some}):
            held.setdefault((attempt, node), []).append(uuid)
        for attempt, node in tx.execute(_MEMBERS, {"ids": some}):
            placement = Placement(node=node, uuids=tuple(held.get((attempt, node), ())))
            placements.setdefault(attempt, []).append(placement)
    return placements


_SAVED: Select[Any] = (
    select(_CHECKPOINT.job_id, _CHECKPOINT.attempt_id, func.max(_CHECKPOINT.created_us).label("created_us"))
    .where(_CHECKPOINT.state == "stored", _CHECKPOINT.job_id.in_(_IDS))
    .group_by(_CHECKPOINT.job_id, _CHECKPOINT.attempt_id)
    .order_by(_CHECKPOINT.attempt_id)  # ids grow with time: the last one counts
)


def _saved(tx: Connection, jobs: Sequence[JobId]) -> dict[JobId, tuple[str, int]]:
    """Attempt and time of each job's newest verified checkpoint."""
    rows = (row for some in chunks(jobs) for row in tx.execute(_SAVED, {"ids": some}))
    return {row.job_id: (row.attempt_id, row.created_us) for row in rows}


#: What lies farther ahead was noted before the clock was set back.
_RESTING: Select[Any] = select(_JOB.id).where(
    _JOB.retry_us > bindparam("now"), _JOB.retry_us <= bindparam("ahead_us"), _JOB.id.in_(_IDS)
)
_SAVING: Select[Any] = (
    select(Job.id)
    .join(Attempt, (Attempt.job_id == Job.id) & (Attempt.number == Job.attempt))
    .join(Member, Member.attempt_id == Attempt.id)
    .join(Node, Node.name == Member.node)
    .where(
        Attempt.claimed_us.is_not(None),
        Attempt.ended_us.between(bindparam("since_us"), bindparam("ahead_us")),
        ~Member.settled,
        ~Node.unreachable,
        Job.id.in_(_IDS),
    )
)


def resting(tx: Connection, jobs: Sequence[JobId], now: int) -> frozenset[JobId]:
    """Return those of the queued jobs that are not to be tried again yet."""
    around = {"now": now, "ahead_us": now + RESTING_US}
    return frozenset(job for some in chunks(jobs) for job in tx.scalars(_RESTING, {"ids": some, **around}))


def saving(tx: Connection, jobs: Sequence[JobId], now: int) -> frozenset[JobId]:
    """Return those of the queued jobs whose last checkpoints are still on the way from a node that is heard."""
    around = {"since_us": now - SAVING_US, "ahead_us": now + SAVING_US}
    return frozenset(job for some in chunks(jobs) for job in tx.scalars(_SAVING, {"ids": some, **around}))
