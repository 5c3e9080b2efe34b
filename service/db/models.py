"""The tables. Times are integer microseconds UTC, sizes bytes; ids are opaque and time-ordered.

States are changed by `service.lifecycle` alone; every other module reads them.
"""

from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Double,
    ForeignKey,
    Index,
    Integer,
    Sequence,
    String,
    UniqueConstraint,
    false,
    text,
    true,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from torchyard.ids import AttemptId, JobId


class Base(DeclarativeBase):
    """Base of all tables; constraint names are fixed so that migrations can name them."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {
        int: BigInteger,
        float: Double,
        dict[str, Any]: JSON,
        list[Any]: JSON,
        JobId: String,
        AttemptId: String,
    }


Base.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

#: Numbers of jobs on PostgreSQL, where submissions overlap; SQLite has one writer and counts on.
JOB_NUMBERS = Sequence("job_numbers", metadata=Base.metadata)


class Installation(Base):
    """Facts of this installation, one row each (``id``, ``secret_key``)."""

    __tablename__ = "installation"
    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


class User(Base):
    __tablename__ = "users"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    #: What they may do where no project says otherwise (`torchyard.api.Role`).
    role: Mapped[str] = mapped_column(default="member", server_default="member")
    #: The project of a service account, which reaches no other; NULL: a person.
    project: Mapped[str | None]
    unix_user: Mapped[str | None]
    created_us: Mapped[int]
    #: Since when they may do nothing here; their jobs and their usage stay.
    deactivated_us: Mapped[int | None]


class Token(Base):
    """A token's SHA-256; the secret itself is never stored."""

    __tablename__ = "tokens"
    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    name: Mapped[str]
    sha256: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[Any]]
    node: Mapped[str | None]
    #: The token that opened this dashboard session; it is revoked with it.
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("tokens.id"), index=True)
    created_us: Mapped[int]
    expires_us: Mapped[int | None]
    last_used_us: Mapped[int | None]
    revoked_us: Mapped[int | None]


class WaitingCode(Base):
    """SHA-256 of a code that opens one session with the rights of a token."""

    __tablename__ = "sign_in_codes"
    sha256: Mapped[str] = mapped_column(primary_key=True)
    token_id: Mapped[str] = mapped_column(ForeignKey("tokens.id", ondelete="CASCADE"), index=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    created_us: Mapped[int]
    expires_us: Mapped[int]


class OidcSignIn(Base):
    """A sign-in by OpenID Connect under way, by the SHA-256 of its state, which the browser alone knows.

    Nonce and verifier are the service's own secrets towards the provider, worth nothing without state and code.
    """

    __tablename__ = "oidc_attempts"
    state_sha256: Mapped[str] = mapped_column(primary_key=True)
    nonce: Mapped[str]
    verifier: Mapped[str]
    #: Address of the browser, as it counts (`sign_in_limits.source_of`).
    source: Mapped[str]
    expires_us: Mapped[int]


class Project(Base):
    __tablename__ = "projects"
    name: Mapped[str] = mapped_column(primary_key=True)
    created_us: Mapped[int]
    #: Who may read its jobs (`torchyard.api.Visibility`); NULL: as the installation has it.
    visibility: Mapped[str | None]
    #: Who may submit jobs to it (`torchyard.api.Submitters`).
    submitters: Mapped[str] = mapped_column(default="everyone", server_default="everyone")
    #: Its jobs may be put back after their trial, to start from the beginning.
    restarts: Mapped[bool] = mapped_column(default=True, server_default=true())


class ProjectMember(Base):
    """A user who may read the jobs of a project whose visibility is ``project``, and their role there.

    Nothing else makes a member: a job or a quota in a project is no leave to read what others do there.
    """

    __tablename__ = "project_members"
    project: Mapped[str] = mapped_column(ForeignKey("projects.name"), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True)
    added_us: Mapped[int]
    #: `torchyard.api.Role`; it takes the place of the user's own within the project.
    role: Mapped[str] = mapped_column(default="member", server_default="member")


class Secret(Base):
    """A secret of a user or of a project, whose value is encrypted with a key that is not in the database."""

    __tablename__ = "secrets"
    __table_args__ = (
        CheckConstraint("(user_id IS NULL) <> (project IS NULL)", name="one_owner"),
        UniqueConstraint("user_id", "name"),
        UniqueConstraint("project", "name"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str | None] = mapped_column(ForeignKey("users.id"))
    project: Mapped[str | None] = mapped_column(ForeignKey("projects.name"))
    name: Mapped[str]
    encrypted: Mapped[str]
    set_by: Mapped[str] = mapped_column(ForeignKey("users.id"))
    created_us: Mapped[int]
    changed_us: Mapped[int]


class SecretUse(Base):
    """The last time at which a job was given a secret."""

    __tablename__ = "secret_uses"
    secret_id: Mapped[str] = mapped_column(ForeignKey("secrets.id"), primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    used_us: Mapped[int]


class Node(Base):
    __tablename__ = "nodes"
    name: Mapped[str] = mapped_column(primary_key=True)
    node_id: Mapped[str]
    home_id: Mapped[str]
    boot_id: Mapped[str]
    pid_namespace: Mapped[str]
    hostname: Mapped[str]
    version: Mapped[str]
    runs_as_root: Mapped[bool]
    draining: Mapped[bool] = mapped_column(default=False)
    #: Why it drains, in the administrator's words.
    drain_message: Mapped[str | None]
    #: The maintenance (a reservation) that it drains for and takes jobs again after; NULL: an administrator's drain.
    maintenance: Mapped[str | None]
    #: Silent for too long; set by the monitor, which measures silence, and taken back by the next heartbeat.
    unreachable: Mapped[bool] = mapped_column(default=False)
    cpus: Mapped[int]
    memory: Mapped[int]
    disk_free: Mapped[int] = mapped_column(default=0)
    #: Bytes that must be free before anything is launched, by its own setting; NULL: the service's.
    disk_floor: Mapped[int | None]
    #: Microseconds for which it has held the devices of its attempts by its last heartbeat, as it measured them.
    held_us: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Who computes on a GPU that is not theirs, in words.
    offenders: Mapped[list[Any]] = mapped_column(default=list)
    #: What those words are made of (`torchyard.wire.Finding`); NULL is nothing, as of an older worker.
    offender_findings: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Words of its administrator that jobs may ask for; NULL is none.
    labels: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    #: What its worker knows (`torchyard.wire.Capability`); NULL is nothing, as of an older worker.
    capabilities: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Why its kernel holds jobs to no limits; NULL where it does, and of an older worker.
    unenforced: Mapped[str | None]
    #: What that is made of (`torchyard.wire.Finding`); NULL of an older worker.
    unenforced_finding: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Whether it can run jobs as a UNIX user, by name (`wire.Heartbeat.accounts`); NULL of an older worker.
    accounts: Mapped[dict[str, bool] | None] = mapped_column(JSON(none_as_null=True))
    #: Heartbeats answered; see `service.lifecycle.proof`.
    beat: Mapped[int] = mapped_column(default=0)
    last_seen_us: Mapped[int | None]
    #: When it came first; since then it counts to what the box could have done.
    registered_us: Mapped[int]


class Device(Base):
    """A GPU or CPU slot; rows of devices that vanished stay, with `present` false."""

    __tablename__ = "devices"
    node: Mapped[str] = mapped_column(ForeignKey("nodes.name"), primary_key=True)
    uuid: Mapped[str] = mapped_column(primary_key=True)
    index: Mapped[int]
    kind: Mapped[str]
    name: Mapped[str]
    memory: Mapped[int]
    #: Why it must not be used: its quarantine, or else what its node tells.
    unusable: Mapped[str | None]
    #: Why its node keeps jobs from it for now (`wire.Device.unusable`), in quarantine too.
    reported_unusable: Mapped[str | None]
    #: What takes it out of use (`wire.Device.fault`), and that with which an administrator has returned it to use.
    fault: Mapped[str | None]
    acknowledged: Mapped[str | None]
    #: Bytes of it that processes from outside of the queue hold.
    foreign_memory: Mapped[int | None]
    present: Mapped[bool] = mapped_column(default=True)
    #: How near it is to the node's other devices (`wire.Topology`), where the driver tells.
    topology: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: What `unusable`, `reported_unusable` and `fault` are made of, by their messages (`torchyard.wire.Finding`).
    findings: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))


class DeviceUse(Base):
    """Memory of a device that is given out: all of it to a job that has the device alone, parts to jobs that share it.

    The check makes it impossible to give out more than there is. Written with each allocation, in its transaction.
    """

    __tablename__ = "device_use"
    node: Mapped[str] = mapped_column(ForeignKey("nodes.name"), primary_key=True)
    uuid: Mapped[str] = mapped_column(primary_key=True)
    capacity: Mapped[int]
    used: Mapped[int]

    __table_args__ = (CheckConstraint("used >= 0 AND used <= capacity", name="within_capacity"),)


class Outage(Base):
    """A span of time in which a device, or a whole node, is given to no new job."""

    __tablename__ = "outages"
    #: SQLite numbers rows by itself only in a column of exactly the type INTEGER.
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    node: Mapped[str] = mapped_column(ForeignKey("nodes.name"))
    #: NULL: the whole node.
    uuid: Mapped[str | None]
    #: `torchyard.api.OutageKind`
    kind: Mapped[str]
    #: The fault, the drain's message, or the maintenance's name; empty where none was given.
    reason: Mapped[str]
    #: What a fault is made of (`torchyard.wire.Finding`), as far as it is known.
    finding: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    started_us: Mapped[int]
    #: NULL while it holds.
    ended_us: Mapped[int | None]

    __table_args__ = (Index("ix_outages_ended_us", "ended_us"),)


class NodeLink(Base):
    """Measured network between two nodes; `a` sorts before `b`."""

    __tablename__ = "node_links"
    a: Mapped[str] = mapped_column(ForeignKey("nodes.name"), primary_key=True)
    b: Mapped[str] = mapped_column(ForeignKey("nodes.name"), primary_key=True)
    bytes_per_s: Mapped[float]
    measured_us: Mapped[int]


#: Condition of a job that waits and has had an attempt. Its words are those of an index.
WAITS_AGAIN = text("state = 'queued' AND attempt > 0")


class Job(Base):
    __tablename__ = "jobs"
    id: Mapped[JobId] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(unique=True)
    name: Mapped[str]
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    project: Mapped[str] = mapped_column(ForeignKey("projects.name"))
    state: Mapped[str]
    version: Mapped[int] = mapped_column(default=1)
    held: Mapped[bool] = mapped_column(default=False)
    priority: Mapped[int]
    spec: Mapped[dict[str, Any]]
    #: The snapshot of code that its spec names: quotas ask for those of all jobs.
    code: Mapped[str | None]
    tags: Mapped[list[Any]]
    #: Number of the newest attempt; 0 before the first.
    attempt: Mapped[int] = mapped_column(default=0)
    retries_used: Mapped[int] = mapped_column(default=0)
    #: The stop that was asked for, by precedence; None while none is.
    stop: Mapped[str | None]
    stop_actor: Mapped[str | None]
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    step: Mapped[int | None]
    total_steps: Mapped[int | None]
    rerun_of: Mapped[JobId | None]
    #: Checkpoint that the next attempt starts from; set by a rerun, later by the job's own checkpoints.
    restore_checkpoint: Mapped[str | None]
    last_event: Mapped[int] = mapped_column(default=0)
    created_us: Mapped[int]
    queued_us: Mapped[int]
    started_us: Mapped[int | None]
    ended_us: Mapped[int | None]
    #: When its version last changed: what a reader that knows older rows asks for.
    changed_us: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    #: Since when it could have started: its age in the queue, which an attempt that ends does not renew.
    eligible_us: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    #: Waits for jobs that its spec names in `after`.
    blocked: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: How long its earlier attempts ran.
    ran_us: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    #: Not to be started again before this: what is not its own fault keeps ending it.
    retry_us: Mapped[int | None]
    #: How often it was stopped in favour of another.
    preemptions: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    #: How often it was put back after its trial: its attempts up to this number count for nothing.
    restarts: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    #: When the service received the request that submitted it.
    received_us: Mapped[int | None]
    #: The group it is a trial of, its place there from 0, and its values of the group's parameters.
    group_id: Mapped[str | None] = mapped_column(index=True)
    trial: Mapped[int | None]
    parameters: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: When its logs, metrics, checkpoints and outputs were taken away (`service.artifacts.discard`).
    discarded_us: Mapped[int | None]
    #: The job whose files its first attempt begins with.
    carry_from: Mapped[JobId | None]
    #: Why the job is not, or would not be, resumed exactly.
    inexact: Mapped[str | None]
    #: What that is made of (`torchyard.wire.Clause`); NULL where no part has a code, as of an older worker.
    inexact_parts: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Why its newest checkpoint could not be written; None once one was.
    unsaved: Mapped[str | None]
    unsaved_parts: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Public links to it count that were made with this number.
    link_serial: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    #: When the last of them expires; None: there are none.
    link_expires_us: Mapped[int | None]

    __table_args__ = (
        Index("ix_jobs_queue", "state", "priority", "number"),
        # Lists, the newest first: by one filter, or by the state beside it.
        Index("ix_jobs_state_number", "state", "number"),
        Index("ix_jobs_user_id_number", "user_id", "number"),
        Index("ix_jobs_user_id_state", "user_id", "state", "number"),
        Index("ix_jobs_project_number", "project", "number"),
        Index("ix_jobs_project_state", "project", "state", "number"),
        # All that lists are filtered by, so that a search for a rare name reads no whole row of those that it passes.
        Index("ix_jobs_listed", "number", "name", "state", "user_id", "project", "group_id"),
        Index("ix_jobs_changed_us", "changed_us"),
        Index("ix_jobs_user_id_code", "user_id", "code"),
        Index("ix_jobs_project_code", "project", "code"),
        # How long the jobs that started in a week had waited.
        Index("ix_jobs_started_us", "started_us", "eligible_us", "created_us"),
        # Those of a long queue that can have metrics: few.
        Index(
            "ix_jobs_waits_again",
            *("state", "attempt", "number"),  # all of the condition, or SQLite prefers the index of all that wait
            sqlite_where=WAITS_AGAIN,
            postgresql_where=WAITS_AGAIN,
        ),
    )


class Dependency(Base):
    """A job that another one's `after` names."""

    __tablename__ = "dependencies"
    job_id: Mapped[JobId] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    needs: Mapped[JobId] = mapped_column(ForeignKey("jobs.id"), primary_key=True, index=True)


class Group(Base):
    """The jobs of one sweep: shown, capped, stopped early and cancelled as one."""

    __tablename__ = "groups"
    id: Mapped[str] = mapped_column(primary_key=True)
    #: From the numbers of jobs; its trials have those that follow.
    number: Mapped[int] = mapped_column(unique=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    project: Mapped[str] = mapped_column(ForeignKey("projects.name"))
    name: Mapped[str]
    #: `torchyard.spec.sweeps.Sweep` as it was submitted, and how many jobs it made.
    sweep: Mapped[dict[str, Any]]
    size: Mapped[int]
    #: Why none of its waiting jobs starts; NULL while they may.
    paused: Mapped[str | None]
    #: When somebody resumed it: trials that had ended by then count no more for a pause.
    resumed_us: Mapped[int | None]
    created_us: Mapped[int]


class Account(Base):
    """Entitlement and recent usage of a user or a project. The name ``*`` holds what counts for everybody
    who has no value of their own; NULL is no limit.
    """

    __tablename__ = "accounts"
    #: user or project
    kind: Mapped[str] = mapped_column(primary_key=True)
    #: A user's id, a project's name, or ``*``.
    name: Mapped[str] = mapped_column(primary_key=True)
    weight: Mapped[float | None]
    max_gpus: Mapped[int | None]
    #: GPU-hours in any seven days.
    max_gpu_hours: Mapped[float | None]
    max_queued: Mapped[int | None]
    #: Bytes in the artifact store with which nothing more is taken.
    max_storage: Mapped[int | None]
    #: GPU-seconds of ended attempts, halved every half-life, as of `usage_us`.
    usage: Mapped[float] = mapped_column(default=0.0)
    usage_us: Mapped[int] = mapped_column(default=0)


class Usage(Base):
    """GPU time of one day (UTC), by whose it was and what became of it."""

    __tablename__ = "usage"
    #: Days since 1970-01-01.
    day: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True)
    project: Mapped[str] = mapped_column(ForeignKey("projects.name"), primary_key=True)
    #: useful, idle, failed, lost
    kind: Mapped[str] = mapped_column(primary_key=True)
    gpu_us: Mapped[int]
    #: The part of it whose jobs could be stopped for others and go on later.
    stoppable_us: Mapped[int] = mapped_column(default=0, server_default=text("0"))


class OwnerUsage(Base):
    """`Usage` summed up by user, and by project: what reports and quotas read, written in the same transaction."""

    __tablename__ = "owner_usage"
    #: user or project
    owner_kind: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    #: A user's id, or a project's name.
    owner: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    gpu_us: Mapped[int]
    stoppable_us: Mapped[int]

    # In the order that reports read them.
    __table_args__ = ({"sqlite_with_rowid": False},)


class WastedUsage(Base):
    """GPU time of a job on one day that came to nothing: the parts of `Usage` that are not useful."""

    __tablename__ = "wasted_usage"
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    #: idle, failed, lost
    kind: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(ForeignKey("jobs.number"), primary_key=True, autoincrement=False)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    gpu_us: Mapped[int]

    # What one user's jobs wasted in a week, without a look at the rows.
    __table_args__ = (Index("ix_wasted_usage_user_id", "user_id", "kind", "day", "number", "gpu_us"),)


class Forecast(Base):
    """Expected running time of a job when it first started (and once its steps told), and how long it took: for history
    and calibration.
    """

    __tablename__ = "forecasts"
    job_id: Mapped[JobId] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    #: What it was made of (`service.estimation.estimates.RawEstimate.basis`): a history, limit, progress, or none.
    source: Mapped[str] = mapped_column(primary_key=True)
    #: What jobs of one history have in common (`service.estimation.estimates.HistoryKey`).
    key: Mapped[str]
    p10_us: Mapped[int | None]
    p50_us: Mapped[int | None]
    p90_us: Mapped[int | None]
    #: The same before its correction by what earlier forecasts were worth.
    raw_p10_us: Mapped[int | None]
    raw_p50_us: Mapped[int | None]
    raw_p90_us: Mapped[int | None]
    made_us: Mapped[int]
    #: From then on: running time of the job that succeeded, over all its attempts.
    actual_us: Mapped[int | None]
    ended_us: Mapped[int | None]

    __table_args__ = (Index("ix_forecasts_ended_us", "ended_us"),)


class Reservation(Base):
    """Devices kept for people or projects (or out of use for maintenance) from one moment to another."""

    __tablename__ = "reservations"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    #: Takes the nodes out of use, instead of keeping them for somebody.
    maintenance: Mapped[bool] = mapped_column(default=False)
    users: Mapped[list[Any]]
    projects: Mapped[list[Any]]
    #: The nodes it is on; empty: any.
    nodes: Mapped[list[Any]]
    #: GPUs; NULL: all of the nodes.
    gpus: Mapped[int | None]
    starts_us: Mapped[int]
    ends_us: Mapped[int]
    created_by: Mapped[str] = mapped_column(ForeignKey("users.id"))
    created_us: Mapped[int]
    cancelled_us: Mapped[int | None]


class Stacks(Base):
    """The stacks of a run's processes at one moment, dumped because it seemed to hang or somebody asked."""

    __tablename__ = "stacks"
    attempt_id: Mapped[AttemptId] = mapped_column(ForeignKey("attempts.id"), primary_key=True)
    node_rank: Mapped[int] = mapped_column(primary_key=True)
    serial: Mapped[int] = mapped_column(primary_key=True)
    at_us: Mapped[int]
    #: `wire.StackDump` as the node sent it.
    dump: Mapped[dict[str, Any]]


class Tag(Base):
    """A job's tag, for filtering."""

    __tablename__ = "tags"
    tag: Mapped[str] = mapped_column(primary_key=True)
    job_id: Mapped[JobId] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    #: Number of the job: lists are in its order.
    number: Mapped[int] = mapped_column(server_default=text("0"))

    __table_args__ = (Index("ix_tags_tag_number", "tag", "number"), Index("ix_tags_number_tag", "number", "tag"))


class Attempt(Base):
    __tablename__ = "attempts"
    id: Mapped[AttemptId] = mapped_column(primary_key=True)
    job_id: Mapped[JobId] = mapped_column(ForeignKey("jobs.id"))
    number: Mapped[int]
    state: Mapped[str]
    version: Mapped[int] = mapped_column(default=1)
    restore_checkpoint: Mapped[str | None]
    resumed_from_step: Mapped[int | None]
    #: Serial of the newest "checkpoint now" order; the node acts once on each.
    checkpoint_serial: Mapped[int] = mapped_column(default=0)
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created_us: Mapped[int]
    nudged_us: Mapped[int | None]
    claimed_us: Mapped[int | None]
    started_us: Mapped[int | None]
    ended_us: Mapped[int | None]
    #: The preemption that is under way (`service.db.records.attempts.PendingPreemption`): for whom, since when, until
    #: when at the latest.
    yielding: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Not to be chosen for a preemption before this: its last one had to be given up.
    spared_until_us: Mapped[int | None]
    #: Serial of the newest "dump your stacks" order.
    dump_serial: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    #: Since when it makes no step, if it is taken for hanging.
    hung_us: Mapped[int | None]
    #: Its GPU time in microseconds by day and kind (as in `Usage`), once it has ended and was charged.
    gpu_time: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: The attempt whose files it began with (`service.artifacts.carry`).
    carried_from: Mapped[AttemptId | None]
    #: It has saved something beyond those.
    saved: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: The moments of its start (`service.db.records.attempts.StoredStart`).
    start: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: What was installed for it, by the hash in `environments`.
    environment: Mapped[str | None]

    __table_args__ = (UniqueConstraint("job_id", "number"), Index("ix_attempts_state", "state"))


class Environment(Base):
    """Python and packages that attempts have run with, once for all that had the same."""

    __tablename__ = "environments"
    sha256: Mapped[str] = mapped_column(primary_key=True)
    #: `wire.Environment`.
    content: Mapped[dict[str, Any]]
    created_us: Mapped[int]


class Member(Base):
    """A member of an attempt: its share of the ranks on one node."""

    __tablename__ = "members"
    attempt_id: Mapped[AttemptId] = mapped_column(ForeignKey("attempts.id"), primary_key=True)
    node_rank: Mapped[int] = mapped_column(primary_key=True)
    node: Mapped[str] = mapped_column(ForeignKey("nodes.name"), index=True)
    #: The nonce that claimed it: the same one may claim again, no other.
    nonce: Mapped[str | None]
    #: Identity and beat of the node when it claimed: what a proof of death is measured against.
    claimed_on: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: The node has stored everything of it and may forget its folder.
    settled: Mapped[bool] = mapped_column(default=False)
    # All that follows is of attempts on several nodes; on one, the attempt's own columns say it.
    #: Where it is reached (`wire.Prepared`), once its code and environment are ready.
    prepared: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: How it ended, as its node said or as was proven, and when that was learnt: its devices are free since.
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    ended_us: Mapped[int | None]
    #: When it was learnt that it failed, before any other member: those are to be killed.
    failed_us: Mapped[int | None]
    #: Since when nobody can see it.
    unseen_us: Mapped[int | None]


class Allocation(Base):
    """A device held by an attempt. The partial unique index makes double booking impossible, and `DeviceUse` giving
    out more of a shared device than there is.
    """

    __tablename__ = "allocations"
    attempt_id: Mapped[AttemptId] = mapped_column(ForeignKey("attempts.id"), primary_key=True)
    node: Mapped[str] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(primary_key=True)
    index: Mapped[int]
    live: Mapped[bool] = mapped_column(default=True)
    created_us: Mapped[int]
    released_us: Mapped[int | None]
    #: Bytes of the device's memory, if it is shared with other attempts; NULL: the whole device.
    share: Mapped[int | None]

    __table_args__ = (
        Index(
            "uq_allocations_live",
            "node",
            "uuid",
            unique=True,
            sqlite_where=text("live AND share IS NULL"),
            postgresql_where=text("live AND share IS NULL"),
        ),
        Index("ix_allocations_released_us", "released_us"),
        CheckConstraint("live = (released_us IS NULL)", name="live_until_released"),
    )


class Event(Base):
    __tablename__ = "events"
    job_id: Mapped[JobId] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    at_us: Mapped[int]
    kind: Mapped[str]
    state: Mapped[str]
    attempt: Mapped[int | None]
    actor: Mapped[str | None]
    message: Mapped[str]
    data: Mapped[dict[str, Any]]


class LogStream(Base):
    """A rank's log of one attempt; the bytes lie in a file of the artifact folder. Rank -1 is the launcher's."""

    __tablename__ = "log_streams"
    attempt_id: Mapped[AttemptId] = mapped_column(ForeignKey("attempts.id"), primary_key=True)
    rank: Mapped[int] = mapped_column(primary_key=True)
    #: Bytes stored and fsynced: the mark.
    size: Mapped[int] = mapped_column(default=0)
    dropped_bytes: Mapped[int] = mapped_column(default=0)
    #: Time of its newest row in `log_times`.
    timed_us: Mapped[int | None]


class LogTime(Base):
    """Time when the log's bytes from `offset` on began to arrive; see `service.telemetry.logs.start_since`."""

    __tablename__ = "log_times"
    attempt_id: Mapped[AttemptId] = mapped_column(ForeignKey("attempts.id"), primary_key=True)
    rank: Mapped[int] = mapped_column(primary_key=True)
    offset: Mapped[int] = mapped_column(primary_key=True)
    time_us: Mapped[int]


class MetricStream(Base):
    """The mark of one process's metrics file."""

    __tablename__ = "metric_streams"
    attempt_id: Mapped[AttemptId] = mapped_column(ForeignKey("attempts.id"), primary_key=True)
    node_rank: Mapped[int] = mapped_column(primary_key=True)
    stream: Mapped[str] = mapped_column(primary_key=True)
    offset: Mapped[int] = mapped_column(default=0)
    skipped: Mapped[int] = mapped_column(default=0)
    #: Records that the process has taken, by its own count, as far as is known; and those of them without a line.
    taken: Mapped[int | None]
    lost: Mapped[int] = mapped_column(default=0, server_default=text("0"))


#: Points behind its rollups with which a series is rolled up.
ROLL_UP_AT = 4096
#: Condition that it is. Its words are those of an index, so they have the number in them.
LONG_UNROLLED = text(f"unrolled >= {ROLL_UP_AT}")


class MetricSeries(Base):
    __tablename__ = "metric_series"
    #: SQLite numbers rows by itself only in a column of exactly the type INTEGER.
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    job_id: Mapped[JobId] = mapped_column(ForeignKey("jobs.id"), index=True)
    attempt_id: Mapped[AttemptId] = mapped_column(ForeignKey("attempts.id"))
    attempt: Mapped[int]
    stream: Mapped[str]
    rank: Mapped[int]
    name: Mapped[str]
    last_step: Mapped[int | None]
    last_time_us: Mapped[int | None]
    last_value: Mapped[float | None]
    last_special: Mapped[int] = mapped_column(default=0)
    #: Of the finite values, with what counts of earlier attempts (`service.ingest.extremes`).
    min_value: Mapped[float | None]
    max_value: Mapped[float | None]
    #: Number of the job: lists are in its order.
    number: Mapped[int] = mapped_column(server_default=text("0"))
    #: Line up to which its points are rolled up, and about how many there are behind it.
    rolled_seq: Mapped[int] = mapped_column(default=-1, server_default=text("-1"))
    unrolled: Mapped[int] = mapped_column(default=0, server_default=text("0"))

    __table_args__ = (
        UniqueConstraint("attempt_id", "stream", "name"),
        # Few series at a time, and none for long: those that are to be rolled up.
        Index("ix_metric_series_unrolled", "unrolled", sqlite_where=LONG_UNROLLED, postgresql_where=LONG_UNROLLED),
        # A list by a metric's newest value reads no whole row of the series that do not pass.
        Index("ix_metric_series_name_number", "name", "number", "last_value"),
        # Those of a rare value.
        Index("ix_metric_series_name_value", "name", "last_value", "number"),
        Index("ix_metric_series_name_min", "name", "min_value", "number"),
        Index("ix_metric_series_name_max", "name", "max_value", "number"),
    )


class MetricPoint(Base):
    """One value. `seq` is the line's number in its file, so a point sent twice is stored once.

    `special` tells values that databases lose: 0 finite, 1 nan, 2 inf, 3 -inf (then `value` is NULL).
    """

    __tablename__ = "metric_points"
    series_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    seq: Mapped[int] = mapped_column(primary_key=True)
    step: Mapped[int]
    time_us: Mapped[int]
    value: Mapped[float | None]
    special: Mapped[int] = mapped_column(default=0)

    __table_args__ = ({"sqlite_with_rowid": False},)


class MetricRollup(Base):
    """Points of a series in blocks (`service.telemetry.rollups`), each row those of lines `first_seq` to `last_seq`.

    `data` are blocks of `service.telemetry.blocks`, one after the other.
    """

    __tablename__ = "metric_rollups"
    series_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    level: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    first_seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    last_seq: Mapped[int]
    data: Mapped[bytes]

    __table_args__ = ({"sqlite_with_rowid": False},)


class Sample(Base):
    """Telemetry of a node (`attempt_id` empty) or of an attempt on it; one row per moment."""

    __tablename__ = "samples"
    node: Mapped[str] = mapped_column(primary_key=True)
    attempt_id: Mapped[AttemptId] = mapped_column(primary_key=True, default="")
    time_us: Mapped[int] = mapped_column(primary_key=True)
    values: Mapped[dict[str, Any]]


class Blob(Base):
    """A file of the content-addressed store, named by its SHA-256."""

    __tablename__ = "blobs"
    sha256: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[int]
    created_us: Mapped[int]


class BlobGrant(Base):
    """Uploader of a blob: nobody else may build a snapshot from its hash."""

    __tablename__ = "blob_grants"
    sha256: Mapped[str] = mapped_column(ForeignKey("blobs.sha256"), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True)


class Snapshot(Base):
    """A code snapshot: a manifest of files, committed once all of them are here."""

    __tablename__ = "snapshots"
    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    sha256: Mapped[str]
    size: Mapped[int]
    committed: Mapped[bool] = mapped_column(default=False)
    created_us: Mapped[int]
    __table_args__ = (UniqueConstraint("user_id", "sha256"),)


class SnapshotFile(Base):
    __tablename__ = "snapshot_files"
    snapshot_id: Mapped[str] = mapped_column(ForeignKey("snapshots.id"), primary_key=True)
    path: Mapped[str] = mapped_column(primary_key=True)
    sha256: Mapped[str] = mapped_column(index=True)
    size: Mapped[int]
    mode: Mapped[int]


class Checkpoint(Base):
    __tablename__ = "checkpoints"
    id: Mapped[str] = mapped_column(primary_key=True)
    job_id: Mapped[JobId] = mapped_column(ForeignKey("jobs.id"), index=True)
    attempt_id: Mapped[AttemptId] = mapped_column(ForeignKey("attempts.id"))
    name: Mapped[str]
    step: Mapped[int]
    #: committed, stored, deleted
    state: Mapped[str]
    metrics: Mapped[dict[str, Any]]
    size: Mapped[int]
    created_us: Mapped[int]
    deleted_us: Mapped[int | None]
    __table_args__ = (UniqueConstraint("attempt_id", "name"),)


class CheckpointFile(Base):
    __tablename__ = "checkpoint_files"
    checkpoint_id: Mapped[str] = mapped_column(ForeignKey("checkpoints.id"), primary_key=True)
    path: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[int]
    sha256: Mapped[str | None] = mapped_column(index=True)
    #: Of the node that wrote it; None where there was one node.
    node_rank: Mapped[int | None]


class CheckpointPart(Base):
    """One of several nodes has brought all its files of a checkpoint to the store."""

    __tablename__ = "checkpoint_parts"
    checkpoint_id: Mapped[str] = mapped_column(ForeignKey("checkpoints.id"), primary_key=True)
    node_rank: Mapped[int] = mapped_column(primary_key=True)


class Output(Base):
    """A file that a job has written."""

    __tablename__ = "outputs"
    job_id: Mapped[JobId] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    #: `wire.Root`: the folder that the path is relative to.
    root: Mapped[str] = mapped_column(primary_key=True, default="output", server_default="output")
    node_rank: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=0, server_default=text("0"))
    path: Mapped[str] = mapped_column(primary_key=True)
    attempt_id: Mapped[AttemptId] = mapped_column(ForeignKey("attempts.id"), index=True)
    size: Mapped[int]
    #: Empty for one that is not to be in the store.
    sha256: Mapped[str] = mapped_column(index=True)
    mode: Mapped[int] = mapped_column(default=0o644, server_default=text("420"))
    #: stored, on-node, deleted
    state: Mapped[str] = mapped_column(default="stored", server_default="stored")
    #: Folder on its node that it stays in.
    kept: Mapped[str | None]
    #: Somebody has asked for it: its node is to bring it.
    wanted: Mapped[bool] = mapped_column(default=False, server_default=false())


class StoredBytes(Base):
    """Bytes that stored checkpoints, files and logs of a user's jobs in a project take in the artifact store.

    Each transaction that changes their sizes changes the sum (`UnitOfWork.count_stored`).
    """

    __tablename__ = "stored_bytes"
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True)
    project: Mapped[str] = mapped_column(ForeignKey("projects.name"), primary_key=True, index=True)
    size: Mapped[int]


class IdempotencyKey(Base):
    """A submission's key and what it made; kept seven days."""

    __tablename__ = "idempotency_keys"
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    body_sha256: Mapped[str]
    job_id: Mapped[JobId] = mapped_column(ForeignKey("jobs.id"))
    created_us: Mapped[int]


class Audit(Base):
    """Entry of the audit: a change of somebody's, or a request that was refused."""

    __tablename__ = "audit"
    id: Mapped[str] = mapped_column(primary_key=True)
    at_us: Mapped[int] = mapped_column(index=True)
    #: Empty for a stranger.
    user_id: Mapped[str]
    action: Mapped[str]
    subject: Mapped[str]
    data: Mapped[dict[str, Any]]
    #: Where the request came from.
    address: Mapped[str | None]
    #: HTTP status of a refusal; NULL: the change was made.
    status: Mapped[int | None]
    #: How often the same was refused within a minute.
    times: Mapped[int] = mapped_column(default=1, server_default=text("1"))
