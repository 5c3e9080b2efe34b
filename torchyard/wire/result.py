"""End of an attempt on a node, and notes for the job's owner."""

from enum import StrEnum

from pydantic import Field

from torchyard.states import StopReason
from torchyard.wire.finding import Clause, OwnClauses
from torchyard.wire.protocol import Message, Text
from torchyard.wire.start import NodeStart


class RankExit(Message):
    """End of one rank."""

    rank: int
    exit_code: int | None = None
    signal: int | None = None
    ended_us: int


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
    """``POST /agent/attempts/{id}/result``: how an attempt ended; 204, or with `settled` answered by `Settled`."""

    kind: ResultKind
    exit_code: int | None = None
    signal: int | None = None
    #: The stop that was under way, if any.
    stop: StopReason | None = None
    #: Step of the checkpoint after which the ranks stopped cleanly, from ``outcome.json``.
    stopped_at_step: int | None = None
    #: Why nothing was saved at the stop, from ``outcome.json``.
    unsaved: Text | None = None
    #: That in sentences, if its rank tells them.
    unsaved_parts: OwnClauses = []
    #: The ranks never polled, so the stop was told to them by SIGTERM; an exit with 0 after it is no success.
    terminated: bool = False
    ranks: list[RankExit] = []
    #: The rank that failed first, and its traceback as its log has it.
    failed_rank: int | None = None
    #: The node it ran on, of an attempt on several.
    node: Text | None = None
    traceback: Text | None = None
    #: Name of a failure that is known by its words (`torchyard.failures.fingerprints`).
    fingerprint: str | None = None
    #: What those words name: a module, a file.
    subject: Text | None = None
    message: Text | None = None
    started_us: int | None = None
    ended_us: int = Field(lt=2**62)
    #: The node's clock when it told of this: what its times are measured against.
    sent_us: int | None = None
    #: How long the node had held the devices by then, from its claim on, by a clock that nobody sets.
    held_us: int | None = None
    #: The disk with its logs was full when it ended: its last words may be missing.
    disk_full: bool = False
    #: The most main memory that it held on the node, in bytes without the page cache; None: nobody could look.
    memory_peak: int | None = None
    #: The most memory that its processes on the node held of one of its GPUs, in bytes; None: nobody could look.
    gpu_memory_peak: int | None = None
    #: Bytes of log and metric records that a full disk or `log_limit` made the node drop.
    dropped_log_bytes: int = 0
    dropped_records: int = 0
    #: It began with the files of another attempt and has saved something itself.
    saved: bool = False
    #: Ids of the runs that the job made with its own trackers, by tracker; None: nobody looked.
    tracker_runs: dict[Text, list[Text]] | None = None
    #: The way to its first step, if that was not told before.
    start: NodeStart | None = None
    #: Nothing of the attempt is left to bring: what ``POST /agent/attempts/{id}/settled`` would tell. A service of the
    #: version before answers 204, and is told by itself.
    settled: bool = False


class NoteKind(StrEnum):
    #: The training is not, or would not be, resumed exactly.
    INEXACT = "inexact"
    #: A checkpoint could not be written, and the training goes on.
    CHECKPOINT_FAILED = "checkpoint-failed"


class JobNote(Message):
    """Note of the in-job part for the job's owner beside the log; a newer one takes the place of an older."""

    kind: NoteKind
    text: Text
    #: Steps done by then; 0 where it is not known.
    step: int = 0
    #: The text in sentences, if one of them has a code.
    parts: list[Clause] = []


class JobNotes(Message):
    """``POST /agent/attempts/{id}/notes``: 204. A service of the version before does not know it: 404."""

    notes: list[JobNote]


class Settled(Message):
    """Answer to ``POST /agent/attempts/{id}/settled``: everything of the attempt is stored. A service of the version
    before answers 204.
    """

    #: The job's next attempt begins with its files: the node may keep them until `Orders.forget` names the attempt.
    awaited: bool = False
