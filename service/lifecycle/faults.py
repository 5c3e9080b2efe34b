"""Faults of the box in a row: of one job, which is not tried for ever, and of one device, which goes out of use."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, bindparam, exists, func, select, update

from service.db.models import Allocation, Attempt, Checkpoint, Device
from service.db.records.attempts import AttemptRecord
from service.db.records.jobs import JobRecord
from service.db.records.nodes import DeviceRecord
from service.db.records.record import Record
from service.lifecycle import outages, outcome
from torchyard.failures import fingerprints, recognition
from torchyard.failures.fingerprints import Blame
from torchyard.ids import AttemptId
from torchyard.spec import Launcher
from torchyard.states import ATTEMPT_FINAL, AttemptState, StopReason
from torchyard.wire import Finding, FindingCode, FindingParams, Result

#: A device on which so many attempts in a row ended by its fault gets no more jobs.
MAX_ON_DEVICE = 3
_BEFORE: Select[Any] = (
    select(Attempt.id, Attempt.state, Attempt.result)
    .where(Attempt.job_id == bindparam("job"), Attempt.number < bindparam("number"))
    .order_by(Attempt.number.desc())
    .limit(2 * outcome.MAX_FAULTS)
)
_DEVICE: Select[Any] = select(Device.__table__).where(
    Device.node == bindparam("node"), Device.uuid == bindparam("uuid")
)
_BEGUN = func.coalesce(Attempt.resumed_from_step, -1)
_CAME_FURTHER: Select[Any] = select(
    exists().where(
        Checkpoint.attempt_id == bindparam("attempt"), Attempt.id == bindparam("attempt"), Checkpoint.step > _BEGUN
    )
)


@dataclass(frozen=True, slots=True)
class _FinishedAttempt(Record):
    """An attempt that is over, with its result if it has one."""

    id: AttemptId
    state: AttemptState
    result: Result | None

    @property
    def cause(self) -> str | None:
        return None if self.result is None else outcome.cause_of(self.result)

    @property
    def spared(self) -> bool:
        """Its end was no reason to spend a retry."""
        idle = self.result is not None and self.result.stop is StopReason.IDLE
        return idle or recognition.blame(self.cause) is Blame.BOX


def in_a_row(tx: Connection, attempt: AttemptRecord) -> int:
    """Count the attempts just before this one that waited again at no cost of a retry, and came no further.

    They failed for what is not the job's fault, or were stopped at its idle limit.
    """
    count = 0
    if attempt.number == 1 or _came_further(tx, attempt.id):
        return count
    before = {"job": attempt.job_id, "number": attempt.number}
    for earlier in _FinishedAttempt.all(tx.execute(_BEFORE, before)):
        if earlier.state is AttemptState.VOIDED:
            continue
        if not earlier.spared or _came_further(tx, earlier.id):
            break
        count += 1
    return count


def _came_further(tx: Connection, attempt_id: AttemptId) -> bool:
    """Tell whether the attempt saved a step beyond the one that it began at: at its stop it may save just that."""
    return bool(tx.scalar(_CAME_FURTHER, {"attempt": attempt_id}))


def condemn(tx: Connection, job: JobRecord, attempt_id: AttemptId, result: Result) -> None:
    """Take devices out of use under which the last attempts all ended by a fault of the GPU, this one among them."""
    if outcome.cause_of(result) != fingerprints.GPU_FAULT:
        return
    for node, uuid in _suspects(tx, job, attempt_id, result):
        if _always_faulty(tx, node, uuid):
            _take_out_of_use(tx, node, uuid)


def _take_out_of_use(tx: Connection, node: str, uuid: str) -> None:
    command = f"yard nodes --resume {node}"
    why = f"{outages.FAULTY}{MAX_ON_DEVICE} jobs: reset the GPU or reboot, then `{command}` (for an administrator)"
    params: FindingParams = {"jobs": MAX_ON_DEVICE, "resume": command}
    finding = Finding(code=FindingCode.FAILING, message=why, params=params)
    device = DeviceRecord.one(tx.execute(_DEVICE, {"node": node, "uuid": uuid}))
    findings = [each.model_dump(mode="json") for each in (*(device.findings or ()), finding)]
    values = {"unusable": why, "findings": findings}
    tx.execute(update(Device).where(Device.node == node, Device.uuid == uuid).values(**values))
    outages.record_device_outage(tx, node, uuid, why, finding)


def _suspects(tx: Connection, job: JobRecord, attempt_id: AttemptId, result: Result) -> list[tuple[str, str]]:
    """Return the failing rank's device where each rank has one, else all that the attempt had."""
    query = (
        select(Allocation.node, Allocation.uuid)
        .where(Allocation.attempt_id == attempt_id)
        .order_by(Allocation.node, Allocation.index)
    )
    held = [(row.node, row.uuid) for row in tx.execute(query)]
    here = [each for each in held if result.node in {None, each[0]}]
    ranked = job.spec.launcher is Launcher.TORCHRUN and job.spec.recipe is None
    if result.failed_rank is None or not ranked or not here:
        return here
    return [here[result.failed_rank % len(here)]]


def _always_faulty(tx: Connection, node: str, uuid: str) -> bool:
    query = (
        select(Attempt.id, Attempt.state, Attempt.result)
        .join(Allocation, Allocation.attempt_id == Attempt.id)
        .where(Allocation.node == node, Allocation.uuid == uuid, Attempt.state.in_(ATTEMPT_FINAL))
        .where(Attempt.started_us.is_not(None))
        .order_by(Attempt.ended_us.desc(), Attempt.id.desc())
        .limit(MAX_ON_DEVICE)
    )
    causes = [attempt.cause for attempt in _FinishedAttempt.each(tx.execute(query))]
    return causes == [fingerprints.GPU_FAULT] * MAX_ON_DEVICE
