"""Records of attempts and their members."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from service.db.records.record import Record
from torchyard import wire
from torchyard.ids import AttemptId, JobId
from torchyard.states import AttemptState


class PendingPreemption(BaseModel):
    """A preemption that is under way, as it is stored in `attempts.yielding`."""

    model_config = ConfigDict(frozen=True, validate_by_name=True, validate_by_alias=True)

    preemptor: str = Field(validation_alias="for", serialization_alias="for")
    """Id of the job or the reservation."""
    words: str
    """The preemptor, as events name it."""
    params: dict[str, Any] = Field(default_factory=dict)
    """What the words are made of; of a row of an earlier version nothing."""
    asked_us: int
    deadline_us: int
    serial: int | None = None
    """Of the order for a checkpoint; None: it can be stopped without one."""
    after: int = -1
    """Newest step whose checkpoint was known when it was asked: only a later one counts."""

    over: bool = False
    """It is put back: it starts from the beginning."""

    @property
    def told(self) -> dict[str, Any]:
        """Return what events tell of the preemptor: its words, and what they are made of."""
        return {"preemptor": self.words, "preemptor_params": self.params}

    @property
    def allowed_s(self) -> int:
        """Seconds that its checkpoint may take."""
        return (self.deadline_us - self.asked_us) // 1_000_000

    def is_over(self, now: int) -> bool:
        """Tell if its checkpoint is too late; so it is where the clock was set back, as nobody knows for how long."""
        return now >= self.deadline_us or self.deadline_us - now > 2 * (self.deadline_us - self.asked_us)


class StoredStart(BaseModel, frozen=True):
    """The moments of an attempt's start, as they are stored in `attempts.start`."""

    looked_us: int | None = None
    """When the scheduling pass began that assigned it."""
    node: wire.NodeStart | None = None
    """What its first node has told."""
    traced: bool | None = None
    """Whether its spans were sent to a collector."""


@dataclass(frozen=True, slots=True)
class AttemptRecord(Record):
    """A row of `attempts`, whole."""

    id: AttemptId
    job_id: JobId
    number: int
    state: AttemptState
    version: int
    restore_checkpoint: str | None
    resumed_from_step: int | None
    checkpoint_serial: int
    result: wire.Result | None
    created_us: int
    nudged_us: int | None
    claimed_us: int | None
    started_us: int | None
    ended_us: int | None
    yielding: PendingPreemption | None
    spared_until_us: int | None
    dump_serial: int
    hung_us: int | None
    gpu_time: dict[str, dict[str, int]] | None
    carried_from: AttemptId | None
    saved: bool
    start: StoredStart | None
    environment: str | None


class ClaimedOn(BaseModel, frozen=True):
    """The node's identity and its count of heartbeats when it claimed a member."""

    identity: wire.Identity
    beat: int


@dataclass(frozen=True, slots=True)
class MemberRecord(Record):
    """A row of `members`: an attempt's member on one node."""

    attempt_id: AttemptId
    node_rank: int
    node: str
    nonce: str | None
    claimed_on: ClaimedOn | None
    settled: bool
    prepared: wire.Prepared | None
    result: wire.Result | None
    ended_us: int | None
    failed_us: int | None
    unseen_us: int | None


@dataclass(frozen=True, slots=True)
class AttemptStart(Record):
    """Time and step at which an attempt began."""

    job_id: JobId
    started_us: int | None
    resumed_from_step: int | None


@dataclass(frozen=True, slots=True)
class ShownMember(Record):
    """Columns of a member that the API shows."""

    attempt_id: AttemptId
    node: str
    node_rank: int
    ended_us: int | None
    settled: bool


@dataclass(frozen=True, slots=True)
class DeviceHold(Record):
    """A device, and the job or the attempt (`owner`) that holds it."""

    owner: str
    node: str
    uuid: str
    index: int
    kind: wire.DeviceKind
