"""Messages between the node agent and the service (``/api/v1/agent``).

The protocol carries a version; the service reads this one and the one before. Times are integer microseconds UTC,
sizes are bytes. Every message may be sent twice.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, field_serializer

from torchyard.spec import JobSpec
from torchyard.states import StopReason

PROTOCOL = 1
PROTOCOL_HEADER = "TorchYard-Protocol"
#: File in the artifact store's inbox that shows a worker that it sees the same file system.
INBOX_PROBE = "probe"
#: Bytes of one node's stacks, as JSON.
MAX_DUMP = 2 * 2**20
#: Celery task that tells a node of an assigned attempt; its only argument is the attempt's id.
LAUNCH_TASK = "torchyard.launch"
#: Celery task that makes a node ask for its orders at once; it has no argument.
NUDGE_TASK = "torchyard.nudge"


def node_queue(node: str) -> str:
    """The Celery queue of a node."""
    return f"node.{node}"


class Message(BaseModel):
    """Base of all wire messages; unknown fields of a newer peer are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class DeviceKind(StrEnum):
    GPU = "gpu"
    CPU_SLOT = "cpu"


class LinkLevel(StrEnum):
    """What lies between two GPUs of a node, the fastest first, as the driver tells it."""

    NVLINK = "nvlink"
    #: One PCIe switch.
    PIX = "pix"
    #: Several PCIe switches.
    PXB = "pxb"
    #: A PCIe host bridge.
    PHB = "phb"
    #: The NUMA node's interconnect.
    NODE = "node"
    #: The link between NUMA nodes.
    SYS = "sys"


class Topology(Message):
    """How near a GPU is to the node's other GPUs; what the driver does not tell is left out."""

    #: Its NUMA node.
    numa: int | None = None
    #: By UUID of the other GPU.
    links: dict[str, LinkLevel] = {}


class Device(Message):
    """One GPU or CPU slot of a node."""

    uuid: str
    index: int
    kind: DeviceKind
    name: str
    memory: int
    #: Why the device must not be used: another stack owns it, or a rank on it could not be killed.
    unusable: str | None = None
    topology: Topology | None = None


class Identity(Message):
    """Who a node is: what proves that silence was death."""

    node_id: str
    home_id: str
    boot_id: str
    pid_namespace: str


class Capability(StrEnum):
    """What a worker knows beyond what all of them do; one that leaves a word out is older, and gets no such jobs."""

    #: Jobs that have part of a GPU (`resources.gpu_share`).
    GPU_SHARE = "gpu-share"
    #: Recipes with `backend: mpi`: the worker's torch was built with MPI.
    MPI = "mpi"
    #: Jobs of users with a UNIX account, and no others: the worker runs each job as its user's own.
    UNIX_ACCOUNTS = "unix-accounts"


class Register(Message):
    """``POST /agent/register``: first message of a worker; answered by `Registered`."""

    node: str
    identity: Identity
    version: str
    hostname: str
    devices: list[Device]
    cpus: int
    memory: int
    runs_as_root: bool
    #: Words of the node's administrator that jobs may ask for.
    labels: list[str] = []
    #: Of `Capability`, and words that only a newer service knows.
    capabilities: list[str] = []


class Registered(Message):
    """What a worker needs from the service."""

    installation: str
    broker_url: str
    broker_key_prefix: str
    heartbeat_s: float
    #: Folder of the artifact store's inbox as the service sees it, and the content of its probe file: a worker that
    #: reads the same there may place files in it instead of uploading them.
    inbox: str
    inbox_probe: str
    #: Bytes that a node's disk is to keep free, unless the node's own setting says otherwise. None: not told.
    disk_floor: int | None = None


class Phase(StrEnum):
    """What the node knows of an attempt."""

    PREPARING = "preparing"
    RUNNING = "running"
    STOPPING = "stopping"
    #: Has a result, which is on its way.
    ENDED = "ended"


class AttemptReport(Message):
    """One attempt that the node holds."""

    attempt: str
    phase: Phase
    started_us: int | None = None
    #: UUIDs of its devices, once it has been prepared.
    devices: list[str] = []
    #: How long the node has held its devices, from its claim on, by a clock that nobody sets.
    held_us: int | None = None
    #: After a minute none of its ranks has joined a process group.
    unjoined: bool = False


class Heartbeat(Message):
    """``POST /agent/heartbeat``; answered by `Orders`.

    `attempts` is the whole inventory after a sweep of the process table: an attempt that is not in it has no process
    on this node.
    """

    identity: Identity
    devices: list[Device]
    attempts: list[AttemptReport]
    #: Free bytes of the file system that holds the attempts.
    disk_free: int
    #: Bytes that its administrator wants to be free before anything is launched; None: as the service says.
    disk_floor: int | None = None
    #: Processes on GPUs that the queue has given to somebody else, or to nobody, in words.
    offenders: list[str] = []
    #: Ended attempts of which the node still keeps files that are not in the store.
    kept: list[str] = []
    #: Ended attempts whose files wait on the node for the next attempt, as `Settled.awaited` told.
    retained: list[str] = []
    #: Of `Orders.accounts`, whether the node can run jobs as that UNIX user, as far as it has looked; None: an older
    #: worker, which finds out in the job.
    accounts: dict[str, bool] | None = None
    #: `Orders.beat` of the newest answer that had arrived before this inventory was begun; None before the first. It
    #: tells which claims the inventory must already show.
    beat: int | None = None


class Action(StrEnum):
    RUN = "run"
    CHECKPOINT = "checkpoint"
    STOP = "stop"
    KILL = "kill"


class Order(Message):
    """The desired state of one attempt."""

    attempt: str
    action: Action
    #: Changes when the order is given anew: a second checkpoint asked for is another order.
    serial: int = 0
    reason: StopReason | None = None
    grace_s: int = 60


class DumpOrder(Message):
    """The stacks of an attempt's processes are wanted, once for each serial."""

    attempt: str
    serial: int


class Root(StrEnum):
    """The folder of an attempt that the path of one of its files is relative to."""

    #: ``TORCHYARD_OUTPUT_DIR``.
    OUTPUT = "output"
    #: The working folder of the code.
    CODE = "code"
    #: The folder above it: what the program calls ``../data/x`` is ``data/x`` here.
    JOB = "job"


class Place(Message):
    """Which of an attempt's files on one node."""

    root: Root
    path: str


class BringOrder(Message):
    """Files that an ended attempt has left on the node are wanted in the store."""

    attempt: str
    files: list[Place]


class Orders(Message):
    """Answer to a heartbeat."""

    assigned: list[str]
    orders: list[Order]
    #: Beside the orders, since a node of the version before would not read an action that it does not know.
    dumps: list[DumpOrder] = []
    #: Attempts whose results and streams are stored: their folders may go. And those of `Heartbeat.retained` whose
    #: files nobody waits for any more.
    forget: list[str] = []
    #: Files of `Heartbeat.kept` to store now.
    bring: list[BringOrder] = []
    #: Attempts of `Heartbeat.kept` whose files were discarded: the node removes them.
    discard: list[str] = []
    #: The UNIX users of people: the next heartbeats say which of them the node can run jobs as.
    accounts: list[str] = []
    #: Number of this answer, to be sent back in the next heartbeat.
    beat: int = 0


class FileRef(Message):
    """One file of a snapshot, checkpoint or output: where it goes and what it holds."""

    path: str
    size: int
    sha256: str
    mode: int = 0o644


class Restore(Message):
    """The checkpoint to resume from.

    A file's hash is empty while the checkpoint is only committed: it then lies on this node, in folder `name` of
    `attempt`'s checkpoints.
    """

    checkpoint: str
    step: int
    files: list[FileRef]
    attempt: str = ""
    name: str = ""


class CarriedFile(FileRef):
    """A file that an earlier attempt left, for the next one to find."""

    root: Root
    #: The attempt that left it.
    attempt: str
    #: It is not in the store, but still on that attempt's node.
    on_node: bool = False
    #: It is of the same job: nobody else needs it there.
    move: bool = False


class Carry(Message):
    """The files that an attempt finds as the one before it left them."""

    #: The attempt before.
    attempt: str
    #: All that it left is known; if not, the node asks again.
    settled: bool
    files: list[CarriedFile]
    #: What it had removed.
    deleted: list[Place] = []


class Launch(Message):
    """``GET /agent/attempts/{id}``: all a node needs to start an attempt."""

    attempt: str
    job: str
    number: int
    spec: JobSpec
    user: str
    unix_user: str | None
    node_rank: int
    devices: list[Device]
    code: list[FileRef] | None
    restore: Restore | None
    carry: Carry | None = None
    #: The only run that the job has made so far with a tracker, by tracker: its next attempt goes on with it.
    tracker_runs: dict[str, str] = {}

    @field_serializer("spec")
    def _without_defaults(self, spec: JobSpec) -> dict[str, Any]:
        # A worker of the version before refuses fields that it does not know: it gets those alone that the job sets.
        return _set_fields(spec.model_dump(mode="json"), JobSpec.model_construct().model_dump(mode="json"))


def _set_fields(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The values that differ from their defaults, within nested models too."""
    return {
        name: _set_fields(value, default) if isinstance(value, dict) and isinstance(default, dict) else value
        for name, value in values.items()
        if value != (default := defaults.get(name))
    }


class Claim(Message):
    """``POST /agent/attempts/{id}/claim``: 204, or 409 if another nonce has it or it is void."""

    nonce: str


class Prepared(Message):
    """``POST /agent/attempts/{id}/prepared``: this node's part of an attempt on several nodes has its code and
    environment; answered by `Go`, or by 409 once the attempt is void. Asked again until the answer is go.
    """

    #: Address by which the other nodes reach this one.
    address: str
    #: Port that the ranks meet at; the first node's counts.
    port: int


class Go(Message):
    """Whether all parts are prepared: if so, where the ranks meet."""

    go: bool
    address: str = ""
    port: int = 0


class Started(Message):
    """``POST /agent/attempts/{id}/running``: the job's first instruction ran; 204."""

    started_us: int


class RankExit(Message):
    """How one rank ended."""

    rank: int
    exit_code: int | None = None
    signal: int | None = None
    ended_us: int


def _storable(text: str) -> str:
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


#: Words of a job's programs. Databases hold no NUL and answers no half characters, but nothing is refused for one.
Text = Annotated[str, AfterValidator(_storable)]


class ResultKind(StrEnum):
    #: The job's process ended by itself (or after a stop that it obeyed).
    EXITED = "exited"
    #: Killed at the end of the grace.
    KILLED = "killed"
    #: Could not be prepared or started; `message` says why. No process ran.
    UNUSABLE = "unusable"
    #: The shim died; what was left was swept.
    LOST = "lost"


class Result(Message):
    """``POST /agent/attempts/{id}/result``: how an attempt ended; 204."""

    kind: ResultKind
    exit_code: int | None = None
    signal: int | None = None
    #: The stop that was under way, if any.
    stop: StopReason | None = None
    #: Step of the checkpoint after which the ranks stopped cleanly, from ``outcome.json``.
    stopped_at_step: int | None = None
    #: Why nothing was saved at the stop, from ``outcome.json``.
    unsaved: Text | None = None
    #: The ranks never polled, so the stop was told to them by SIGTERM; an exit with 0 after it is no success.
    terminated: bool = False
    ranks: list[RankExit] = []
    #: The rank that failed first, and its traceback as its log has it.
    failed_rank: int | None = None
    #: The node it ran on, of an attempt on several.
    node: Text | None = None
    traceback: Text | None = None
    #: Name of a failure that is known by its words (`torchyard.fingerprints`).
    fingerprint: str | None = None
    #: What those words name: a module, a file.
    subject: Text | None = None
    message: Text | None = None
    started_us: int | None = None
    ended_us: int
    #: The node's clock when it told of this: what its times are measured against.
    sent_us: int | None = None
    #: How long the node had held the devices by then, from its claim on, by a clock that nobody sets.
    held_us: int | None = None
    #: The disk with its logs was full when it ended: its last words may be missing.
    disk_full: bool = False
    #: Bytes of log and metric records that a full disk or `log_limit` made the node drop.
    dropped_log_bytes: int = 0
    dropped_records: int = 0
    #: It began with the files of another attempt and has saved something itself.
    saved: bool = False
    #: Ids of the runs that the job made with its own trackers, by tracker; None: nobody looked.
    tracker_runs: dict[Text, list[Text]] | None = None


class NoteKind(StrEnum):
    #: The training is not, or would not be, resumed exactly.
    INEXACT = "inexact"
    #: A checkpoint could not be written, and the training goes on.
    CHECKPOINT_FAILED = "checkpoint-failed"


class JobNote(Message):
    """What the in-job part has to tell the job's owner beside the log; a newer note takes the place of an older."""

    kind: NoteKind
    text: Text
    #: Steps done by then; 0 where it is not known.
    step: int = 0


class JobNotes(Message):
    """``POST /agent/attempts/{id}/notes``: 204. A service of the version before does not know it: 404."""

    notes: list[JobNote]


class Frame(Message):
    """One call on a stack."""

    function: Text
    file: Text
    #: 0 where it is not known, as in native code.
    line: int
    #: Not Python: a function of a shared library.
    native: bool = False


class ThreadStack(Message):
    """The calls of one thread, the innermost first."""

    name: Text | None = None
    frames: list[Frame]


class ProcessStack(Message):
    """What one process does: a rank's own, or one that a rank has started."""

    pid: int
    #: The rank that it is, or belongs to.
    rank: int
    #: Whether it is the rank's own process.
    main: bool
    #: Its program and script; never the other arguments, which may hold tokens.
    command: Text
    #: The main thread comes first.
    threads: list[ThreadStack] = []
    #: Function of `torch.distributed` that the main thread is in, if it is in one.
    collective: Text | None = None
    #: Else the job's own function that it is in, or ``data loading``.
    doing: Text | None = None
    #: Line of the job's own code that this was called from: ``train.py:88``.
    place: Text | None = None
    #: Why the stacks could not be read, and the mend.
    error: Text | None = None


class StackDump(Message):
    """``POST /agent/attempts/{id}/stacks``: what the processes of an attempt do on one node; 204."""

    serial: int
    #: The node's clock.
    at_us: int
    processes: list[ProcessStack]
    #: Processes left out, for there are too many.
    left_out: int = 0


class Settled(Message):
    """Answer to ``POST /agent/attempts/{id}/settled``: everything of the attempt is stored. A service of the version
    before answers 204.
    """

    #: The job's next attempt begins with its files: the node may keep them until `Orders.forget` names the attempt.
    awaited: bool = False


class Mark(Message):
    """Answer to every ingest request: all before `offset` is stored, fsynced, and need not be kept."""

    offset: int


class MetricRecord(Message):
    """One line of a process's metrics file. Non-finite values travel as ``"nan"``, ``"inf"``, ``"-inf"``."""

    step: int
    time_us: int
    values: dict[str, float | Literal["nan", "inf", "-inf"]]
    total_steps: int | None = None


class MetricBatch(Message):
    """``POST /agent/attempts/{id}/metrics``; answered by `Mark`.

    `stream` names the process's file, `offset` and `end` are byte offsets in it; `records` are the lines between
    them. A batch that starts before the stored mark is cut there, one that starts after it is refused with 409 and
    the mark. `skipped` counts lines that could not be read. `taken` is the number of records that the process had
    taken by the end of the batch, by its own count: those without a line were lost. None: it does not count them.
    """

    node_rank: int
    stream: str
    rank: int
    offset: int
    end: int
    records: list[tuple[int, MetricRecord]]
    skipped: int = 0
    taken: int | None = None


class SampleBatch(Message):
    """``POST /agent/samples``: telemetry of the node and its jobs, sampled every 2 s; 204.

    `values` maps a series (``gpu.0.utilization``, ``cpu.percent``, ``memory.used``) to a number; `attempt` is None for
    the node's own series.
    """

    samples: list["Sample"]


class Sample(Message):
    time_us: int
    attempt: str | None = None
    values: dict[str, float]


class CheckpointFile(Message):
    path: str
    size: int
    sha256: str | None = None


class CheckpointReport(Message):
    """``POST /agent/attempts/{id}/checkpoints``: first without hashes (committed), again with them (verified).

    Answered by `CheckpointAnswer`.
    """

    name: str
    step: int
    created_us: int
    metrics: dict[Text, float | Literal["nan", "inf", "-inf"]] = {}
    files: list[CheckpointFile]


class CheckpointAnswer(Message):
    """Which files the store still lacks, by hash; empty with all hashes given: the checkpoint is stored."""

    checkpoint: str
    missing: list[str]
    #: Names of this attempt's checkpoints whose local folders the node may remove.
    remove: list[str] = []


class WrittenFile(FileRef):
    """A file that the job has written or changed outside its output folder, or one that stays on the node."""

    root: Root = Root.CODE
    #: It is not to be stored: it stays on the node, below `OutputReport.kept`. Its hash may be empty.
    on_node: bool = False


class OutputReport(Message):
    """``POST /agent/attempts/{id}/outputs``: files that the job has written, with hashes; answered by `Missing`.

    A report adds to earlier ones, and replaces what they said of the same files.
    """

    #: What lies in the output folder.
    files: list[FileRef]
    #: What lies elsewhere; a service of the version before does not read it.
    written: list[WrittenFile] = []
    #: Files of the snapshot, and files reported or carried earlier, that are no longer there.
    deleted: list[Place] = []
    #: Folder on the node of those that stay there.
    kept: str = ""
    #: The attempt has got further than the files that it began with: it has saved something.
    saved: bool = False


class Missing(Message):
    """Hashes that the store lacks: place them in the inbox, or PUT them to ``/agent/blobs/{sha256}``."""

    missing: list[str]
    #: Bytes that may be copied to the store before its disk is too full; None: not told.
    room: int | None = None


class Placed(Message):
    """``POST /agent/blobs/{sha256}``: the file lies in the inbox; the service checks it and takes it over; 204.

    `placed` is its name there, ``<sha256>.<random>``.
    """

    placed: str
    size: int
    #: A second name of a file that nobody writes any more, whose first name goes afterwards: taken from the service's
    #: own UNIX user only.
    linked: bool = False
