"""Attempts, their logs, metrics and stacks as the REST API shows them."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from torchyard.api.base import Number, Resource
from torchyard.api.jobs import HeldDevice, JobError
from torchyard.states import AttemptState
from torchyard.wire import ColdCode, Environment, PreloadedModules, ProcessStack


class Member(Resource):
    """An attempt's part on one node, and the ranks of its processes."""

    node: str
    """Name of the node."""
    node_rank: int
    """Its place among the attempt's nodes, from 0."""
    first_rank: int
    """The first rank that runs there."""
    last_rank: int
    """The last rank that runs there."""
    ended_at: datetime | None
    """When it ended, if it did before the attempt."""
    settled: bool = True
    """Whether the node has stored or listed all that the part left."""


class Attempt(Resource):
    id: str
    """Its id."""
    number: int
    """Its number among the job's attempts, from 1."""
    state: AttemptState
    """Where it is on its way."""
    node: str
    """The first of its nodes."""
    members: list[Member]
    """Its parts, one on each node."""
    devices: list[HeldDevice]
    """GPUs or CPU slots that it was given."""
    created_at: datetime
    """When it was given its devices."""
    claimed_at: datetime | None
    """When its node claimed it; null: it has not."""
    started_at: datetime | None
    """When its first instruction ran; null: it has not."""
    ended_at: datetime | None
    """When it ended; null: it has not."""
    resumed_from_step: int | None
    """Step of the checkpoint that it went on from; null: it began anew."""
    exit_code: int | None
    """Exit code of the rank that decided its end; null: there is none."""
    signal: int | None
    """Signal that ended that rank; null: none did."""
    error: JobError | None
    """Why it failed; null: it did not."""
    memory_peak: int | None = None
    """The most main memory that it held on a node, in bytes without the page cache; null: it runs, or nobody looked."""
    gpu_memory_peak: int | None = None
    """The most memory that its processes held of one of its GPUs, in bytes; null: it runs, or nobody could look."""
    dropped_log_bytes: int
    """Bytes of its logs that were dropped, by a full disk or `log_limit`."""
    dropped_records: int
    """Metric records that were lost, mostly because the disk was full: their points are missing."""
    settled: bool = True
    """Whether all that it left is stored or listed; until then files may still arrive."""
    carried_from: str | None = None
    """The attempt whose files it began with."""
    put_back: bool = False
    """It was put back after its trial: the job starts from the beginning, and what it did counts for nothing."""


class StartStageName(StrEnum):
    """Stage of an attempt's start, in the order in which they come; each ends where the next begins."""

    #: The request is checked and its job stored.
    REQUEST = "request"
    #: Its commit, and the wait in the queue.
    QUEUE = "queue"
    #: The scheduling pass that gave it devices.
    SCHEDULING = "scheduling"
    #: Its commit, and the message to the node.
    PUBLISHING = "publishing"
    #: The message's way through Redis and Celery.
    DELIVERY = "delivery"
    #: The node makes a folder for the attempt.
    LAUNCH = "launch"
    #: It takes the attempt, and is told what to start.
    CLAIM = "claim"
    #: Folder, code, checkpoint and environment are laid out.
    PREPARATION = "preparation"
    #: The process that guards the attempt is forked or executed.
    SHIM = "shim"
    #: The job's main process is forked; its first instruction ends this.
    FORK = "fork"
    #: The interpreter of torchrun's agent starts.
    AGENT = "agent"
    AGENT_IMPORTS = "agent imports"
    #: The agent's rendezvous, and the wrapper of rank 0.
    RANK = "rank"
    PROGRAM = "program"
    #: Rank 0's interpreter starts and imports torch.
    IMPORTS = "imports"
    #: From there until it has joined the process group.
    RENDEZVOUS = "rendezvous"
    #: From there through model and data to the end of the first optimizer step.
    FIRST_STEP = "first step"
    FIRST_REPORT = "first report"


class StartStage(Resource):
    """Stage of a start, with its beginning since the first one's and its length."""

    name: StartStageName
    """The stage."""
    at_ms: float
    """Milliseconds from the beginning of the first stage to that of this one."""
    ms: float
    """Its length in milliseconds."""


class StartTiming(Resource):
    """Start of an attempt, from the request to what is known last of it; what is not known is left out."""

    attempt: int
    """Number of the attempt."""
    begun_at: datetime
    """When the first stage began."""
    stages: list[StartStage]
    """The stages, in order."""
    warm: bool | None
    """Whether its processes were forked from a server that had PyTorch loaded; null: not known."""
    cold_reason: str | None
    """Why it was not, or not in all of its processes."""
    cold_code: str | None = Field(default=None, json_schema_extra={"x-extensible-enum": list(ColdCode)})
    """The same as a machine-readable reason; null: none, or from an older node."""
    cold_params: dict[str, Any] = {}
    """What the reason names beside its code (`said`), for words in another language."""
    preloaded: PreloadedModules | None = None
    """What it found loaded besides, since earlier jobs have imported it; null: nothing."""
    clock_skew_ms: float | None
    """Milliseconds that the node's clock is ahead of the service's, which are taken off its times; null: not known."""
    clock_skew_error_ms: float | None
    """How far off that may be, in milliseconds."""


class Buckets(Resource):
    """Consecutive parts of a series, in columns of one length; only values that are numbers are in them."""

    first_step: list[int]
    """Step of each bucket's first point."""
    last_step: list[int]
    """Step of each bucket's last point."""
    first_time: list[float]
    """Unix time of each bucket's first point, in seconds."""
    last_time: list[float]
    """Unix time of each bucket's last point, in seconds."""
    count: list[int]
    """Points of each bucket, at least one."""
    min: list[float]
    """Smallest value of each bucket."""
    mean: list[float]
    """Mean value of each bucket."""
    max: list[float]
    """Largest value of each bucket."""


class Series(Resource):
    """Points are ``[step, unix time in seconds, value]`` in order of steps."""

    name: str
    """Name of the metric."""
    rank: int
    """The rank that reported it."""
    points: list[tuple[int, float, Number]]
    """``[step, unix time in seconds, value]`` of each point, in order of steps."""
    buckets: Buckets | None = None
    """If they were asked for, and the series has more points than that many: its numbers. Then `points` are only NaN
    and infinities, of each the first in a bucket."""


class Metrics(Resource):
    series: list[Series]
    """One for each metric and rank."""
    cursor: str
    """Pass as `since` to get only newer points."""
    reset: bool
    """Whether the points replace what was read before (no `since`, or a later attempt has resumed) or follow it."""


class Curve(Resource):
    """One metric of one job, in parts of equal width; what a later attempt has done again is left out.

    Columns of one length, for the parts that have points. The part of number ``n`` reaches from ``n * width`` to
    before ``(n + 1) * width``, so curves of different jobs lie on one grid.
    """

    job: str
    """Id of the job."""
    name: str
    """Name of the metric."""
    number: list[int]
    """Number of each part."""
    count: list[int]
    """Points of each part, at least one."""
    min: list[float]
    """Smallest value of each part."""
    mean: list[float]
    """Mean value of each part."""
    max: list[float]
    """Largest value of each part."""
    special: list[int]
    """Numbers of the parts that hold NaN or infinity."""
    last: Number | None
    """The newest value; null: there is none."""


class Curves(Resource):
    """``GET /metrics/curves``: metrics of many jobs on one grid."""

    width: float
    """Width of a part: steps, or seconds since each job's start."""
    rough: bool
    """Only some points of each part were read: peaks may be missing."""
    curves: list[Curve]
    """One for each job and metric that has points."""


class Extreme(Resource):
    """Smallest and largest value of a job's metric; what a later attempt has done again is left out."""

    job: str
    """Id of the job."""
    name: str
    """Name of the metric."""
    min: float
    """Smallest value that is a number."""
    max: float
    """Largest value that is a number."""


class Extremes(Resource):
    """``GET /metrics/extremes``: the ends of metrics of many jobs."""

    extremes: list[Extreme]
    """One for each job and metric that has a number."""


class LogBlock(Resource):
    """Consecutive lines of a log: where they begin, how many lines come before, and when they came."""

    offset: int
    """Byte at which the first line begins."""
    line: int
    """Lines before it."""
    time: float | None
    """Unix time at which it came, in seconds; null where that was not noted."""


class LogIndex(Resource):
    """``GET /jobs/{id}/logs/index``: where lines of a log are found."""

    attempt: int
    """Number of the attempt."""
    size: int
    """Bytes that the blocks cover."""
    lines: int
    """Lines that the blocks cover; a last line without an end counts."""
    blocks: list[LogBlock]
    """The blocks, in order."""


class LogMatch(Resource):
    """A line that was found, by its number from 0, with lines around it."""

    line: int
    """Number of the line, from 0."""
    offset: int
    """Byte at which it begins."""
    text: str
    """The line itself."""
    before: list[str]
    """Lines before it."""
    after: list[str]
    """Lines after it."""


class LogSearch(Resource):
    """``GET /jobs/{id}/logs/search``: lines that hold the words; long lines are cut."""

    attempt: int
    """Number of the attempt."""
    count: int
    """Lines that were found in the part that was read, more than `matches` perhaps."""
    matches: list[LogMatch]
    """The lines that were found."""
    next: int | None
    """`offset` with which to go on; null: the log was read to its end."""
    line: int
    """`line` with which to go on."""
    line_offset: int
    """Byte at which that line begins: `offset` with which to go on once a log that was read to its end has grown."""


class LogStream(Resource):
    """One rank's log of one attempt; rank -1 is the launcher's."""

    attempt: int
    """Number of the attempt."""
    rank: int
    """The rank; -1 is the launcher."""
    size: int
    """Bytes of the log."""
    dropped_bytes: int
    """Bytes that were dropped, by a full disk or `log_limit`."""


class Stacks(Resource):
    """The stacks of an attempt's processes on one node at one moment."""

    attempt: int
    """Number of the attempt."""
    node: str
    """Name of the node."""
    node_rank: int
    """The node's place among the attempt's nodes, from 0."""
    serial: int
    """Grows with every time that they were asked for."""
    at: datetime
    """When they were taken."""
    summary: str
    """What each rank did, in words."""
    processes: list[ProcessStack]
    """The ranks' own processes first."""
    left_out: int
    """Processes left out, for there are too many."""


class JobEnvironment(Resource):
    """``GET /jobs/{id}/environment``: what was installed for an attempt."""

    attempt: int | None
    """Number of the attempt; null: none of them has told."""
    environment: Environment | None
    """Python and packages; null: they are not known."""
