"""Attempts, their logs, metrics and stacks as the REST API shows them."""

from datetime import datetime
from enum import StrEnum

from torchyard.api.base import Number, Resource
from torchyard.api.jobs import HeldDevice, JobError
from torchyard.states import AttemptState
from torchyard.wire import ProcessStack


class Member(Resource):
    """An attempt's part on one node, and the ranks of its processes."""

    node: str
    node_rank: int
    first_rank: int
    last_rank: int
    #: When it ended, if it did before the attempt.
    ended_at: datetime | None
    #: Whether the node has stored or listed all that the part left.
    settled: bool = True


class Attempt(Resource):
    id: str
    number: int
    state: AttemptState
    #: Its first node.
    node: str
    members: list[Member]
    devices: list[HeldDevice]
    created_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    resumed_from_step: int | None
    exit_code: int | None
    signal: int | None
    error: JobError | None
    #: The most main memory that it held on a node, in bytes without the page cache; None: it runs, or nobody looked.
    memory_peak: int | None = None
    #: The most memory that its processes held of one of its GPUs, in bytes; None: it runs, or nobody could look.
    gpu_memory_peak: int | None = None
    #: Of its logs, by a full disk or `log_limit`.
    dropped_log_bytes: int
    #: Metric records that were lost, mostly because the disk was full: their points are missing.
    dropped_records: int
    #: Whether all that it left is stored or listed; until then files may still arrive.
    settled: bool = True
    #: The attempt whose files it began with.
    carried_from: str | None = None


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
    #: The node asks what to start.
    LAUNCH = "launch"
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
    at_ms: float
    ms: float


class StartTiming(Resource):
    """Start of an attempt, from the request to what is known last of it; what is not known is left out."""

    attempt: int
    begun_at: datetime
    stages: list[StartStage]
    #: Whether its processes were forked from a server that had PyTorch loaded; None: not known.
    warm: bool | None
    #: Why it was not, or not in all of its processes.
    cold_reason: str | None
    #: How far the node's clock is ahead of the service's, which is taken off its times, and how far off that may be.
    clock_skew_ms: float | None
    clock_skew_error_ms: float | None


class Buckets(Resource):
    """Consecutive parts of a series, in columns of one length; only values that are numbers are in them."""

    first_step: list[int]
    last_step: list[int]
    #: Unix time in seconds.
    first_time: list[float]
    last_time: list[float]
    #: Points of each bucket, at least one.
    count: list[int]
    min: list[float]
    mean: list[float]
    max: list[float]


class Series(Resource):
    """Points are ``[step, unix time in seconds, value]`` in order of steps."""

    name: str
    rank: int
    points: list[tuple[int, float, Number]]
    #: If they were asked for, and the series has more points than that many: its numbers. Then `points` are only NaN
    #: and infinities, of each the first in a bucket.
    buckets: Buckets | None = None


class Metrics(Resource):
    series: list[Series]
    #: Pass as `since` to get only newer points.
    cursor: str
    #: Whether the points replace what was read before (no `since`, or a later attempt has resumed) or follow it.
    reset: bool


class Curve(Resource):
    """One metric of one job, in parts of equal width; what a later attempt has done again is left out.

    Columns of one length, for the parts that have points. The part of number ``n`` reaches from ``n * width`` to
    before ``(n + 1) * width``, so curves of different jobs lie on one grid.
    """

    job: str
    name: str
    number: list[int]
    #: Points of each part, at least one.
    count: list[int]
    min: list[float]
    mean: list[float]
    max: list[float]
    #: Numbers of the parts that hold NaN or infinity.
    special: list[int]
    last: Number | None


class Curves(Resource):
    """``GET /metrics/curves``: metrics of many jobs on one grid."""

    #: Steps, or seconds since each job's start.
    width: float
    #: Only some points of each part were read: peaks may be missing.
    rough: bool
    curves: list[Curve]


class LogBlock(Resource):
    """Consecutive lines of a log: where they begin, how many lines come before, and when they came."""

    offset: int
    line: int
    #: Unix time in seconds; None where it was not noted.
    time: float | None


class LogIndex(Resource):
    """``GET /jobs/{id}/logs/index``: where lines of a log are found."""

    attempt: int
    #: Bytes and lines that the blocks cover; a last line without an end counts.
    size: int
    lines: int
    blocks: list[LogBlock]


class LogMatch(Resource):
    """A line that was found, by its number from 0, with lines around it."""

    line: int
    offset: int
    text: str
    before: list[str]
    after: list[str]


class LogSearch(Resource):
    """``GET /jobs/{id}/logs/search``: lines that hold the words; long lines are cut."""

    attempt: int
    #: Lines that were found in the part that was read, more than `matches` perhaps.
    count: int
    matches: list[LogMatch]
    #: Go on with `offset` here, from line `line`; None: the log was read to its end.
    next: int | None
    line: int


class LogStream(Resource):
    """One rank's log of one attempt; rank -1 is the launcher's."""

    attempt: int
    rank: int
    size: int
    dropped_bytes: int


class Stacks(Resource):
    """What the processes of an attempt did on one node at one moment."""

    attempt: int
    node: str
    node_rank: int
    #: Grows with every time that they were asked for.
    serial: int
    at: datetime
    #: What each rank did, in words.
    summary: str
    #: The ranks' own processes first.
    processes: list[ProcessStack]
    #: Processes left out, for there are too many.
    left_out: int
