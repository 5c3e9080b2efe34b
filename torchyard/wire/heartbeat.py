"""Heartbeats of a node, and the orders that answer them."""

from enum import StrEnum

from torchyard.ids import AttemptId
from torchyard.states import StopReason
from torchyard.wire.devices import Device
from torchyard.wire.files import Place
from torchyard.wire.finding import Finding
from torchyard.wire.protocol import Message
from torchyard.wire.registration import Identity


class Phase(StrEnum):
    """Phase of an attempt, as its node knows it."""

    PREPARING = "preparing"
    RUNNING = "running"
    STOPPING = "stopping"
    #: Has a result, which is on its way.
    ENDED = "ended"


class AttemptReport(Message):
    """One attempt that the node holds."""

    attempt: AttemptId
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
    #: What those words are made of; an older node tells nothing.
    offender_findings: list[Finding] = []
    #: Ended attempts of which the node still keeps files that are not in the store.
    kept: list[AttemptId] = []
    #: Ended attempts whose files wait on the node for the next attempt, as `Settled.awaited` told.
    retained: list[AttemptId] = []
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


class AttemptOrder(Message):
    """The desired state of one attempt."""

    attempt: AttemptId
    action: Action
    #: Changes when the order is given anew: a second checkpoint asked for is another order.
    serial: int = 0
    reason: StopReason | None = None
    grace_s: int = 60


class DumpOrder(Message):
    """The stacks of an attempt's processes are wanted, once for each serial."""

    attempt: AttemptId
    serial: int


class BringOrder(Message):
    """Files that an ended attempt has left on the node are wanted in the store."""

    attempt: AttemptId
    files: list[Place]


class Orders(Message):
    """Answer to a heartbeat."""

    assigned: list[AttemptId]
    orders: list[AttemptOrder]
    #: Beside the orders, since a node of the version before would not read an action that it does not know.
    dumps: list[DumpOrder] = []
    #: Attempts whose results and streams are stored: their folders may go. And those of `Heartbeat.retained` whose
    #: files nobody waits for any more.
    forget: list[AttemptId] = []
    #: Files of `Heartbeat.kept` to store now.
    bring: list[BringOrder] = []
    #: Attempts of `Heartbeat.kept` whose files were discarded: the node removes them.
    discard: list[AttemptId] = []
    #: The UNIX users of people: the next heartbeats say which of them the node can run jobs as.
    accounts: list[str] = []
    #: Number of this answer, to be sent back in the next heartbeat.
    beat: int = 0
