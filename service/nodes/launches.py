"""Launches: everything that a node needs to start an attempt."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Select, and_, bindparam, select

from service import lifecycle
from service.artifacts import carry, checkpoints, snapshots
from service.attempts import tracked
from service.db.models import Allocation, Attempt, Device, Job, Member, User
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.errors import ProblemError, StaleSpecError, not_found
from service.secrets import of_jobs
from service.secrets.key_file import KeyFile
from torchyard import wire
from torchyard.ids import AttemptId, JobId
from torchyard.spec import JobSpec, error_messages
from torchyard.states import AttemptState


@dataclass(frozen=True, slots=True)
class _LaunchedMember(Record):
    """A member of an attempt, with all of the attempt, its job and user that a launch tells."""

    job_id: JobId
    number: int
    state: AttemptState
    started_us: int | None
    restore_checkpoint: str | None
    carried_from: AttemptId | None
    spec: StoredSpec
    user_id: str
    project: str
    user: str
    unix_user: str | None
    deactivated_us: int | None
    node: str
    node_rank: int
    nonce: str | None

    @property
    def secrets(self) -> of_jobs.NamedSecrets:
        """The secrets that the job names."""
        return of_jobs.NamedSecrets(user_id=self.user_id, project=self.project, names=self.spec.secrets)


def valid_spec(stored: StoredSpec) -> JobSpec:
    """Return a stored job's spec; raises `StaleSpecError` if this version does not accept it any more."""
    try:
        return stored.model()
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "spec"
        raise StaleSpecError(f"{place}: {error_messages.message(first, JobSpec)}") from error


def launch(tx: Connection, attempt_id: AttemptId, node: str) -> wire.Launch:
    """Return the launch of the attempt's member on the node.

    Raises ``not-found`` for an unknown attempt, ``forbidden`` for another node's, ``not-acceptable-state`` if it is
    over, or its user was deactivated or a secret of its removed before a node took it; `StaleSpecError` when the spec,
    stored by an earlier version, is not valid any more.
    """
    member = _member(tx, attempt_id, node)
    if member.state not in lifecycle.LIVE:
        raise ProblemError("not-acceptable-state", f"Attempt {attempt_id} is {member.state}: forget it.")
    if member.state == AttemptState.ASSIGNED:
        _check_may_start(tx, attempt_id, member)
    spec = valid_spec(member.spec)
    return wire.Launch(
        attempt=attempt_id,
        job=member.job_id,
        number=member.number,
        spec=spec,
        user=member.user,
        unix_user=member.unix_user,
        node_rank=member.node_rank,
        devices=_devices(tx, attempt_id, node),
        code=snapshots.files(tx, spec.code) if spec.code else None,
        restore=checkpoints.restore(tx, member.restore_checkpoint) if member.restore_checkpoint else None,
        carry=_carry(tx, member),
        tracker_runs=tracked.only_runs(tx, member.job_id, member.number),
    )


def secrets(tx: Connection, keys: KeyFile, attempt_id: AttemptId, node: str, nonce: str, now: int) -> wire.Secrets:
    """Return the values of the secrets that an attempt is about to start with, for the node that has claimed it.

    Raises ``conflict`` if the nonce is not its, it runs already, its user was deactivated, a secret was removed or
    cannot be decrypted; else as `launch`.
    """
    member = _member(tx, attempt_id, node)
    if member.nonce != nonce or member.state not in lifecycle.LIVE or member.started_us is not None:
        raise ProblemError("conflict", f"Attempt {attempt_id} is {member.state}: secrets are for its start alone.")
    if member.deactivated_us is not None:
        raise ProblemError("conflict", f"{member.user} is deactivated: their jobs get no secrets.")
    return wire.Secrets(values=of_jobs.give(tx, keys, member.secrets, member.job_id, now))


def _check_may_start(tx: Connection, attempt_id: AttemptId, member: _LaunchedMember) -> None:
    if member.deactivated_us is not None:
        raise ProblemError(
            "not-acceptable-state", f"{member.user} is deactivated: attempt {attempt_id} must not start."
        )
    for names in of_jobs.missing(tx, {member.job_id: member.secrets}).values():
        raise ProblemError("not-acceptable-state", f"Must not start: {of_jobs.absent(names, member.project)}.")


def _carry(tx: Connection, member: _LaunchedMember) -> wire.Carry | None:
    if member.carried_from is None:
        return None
    return carry.files(tx, member.job_id, member.carried_from, member.node_rank, member.spec.code)


_MEMBERS: Select[Any] = (
    select(
        Attempt.job_id,
        Attempt.number,
        Attempt.state,
        Attempt.started_us,
        Attempt.restore_checkpoint,
        Attempt.carried_from,
        Job.spec,
        Job.user_id,
        Job.project,
        User.name.label("user"),
        User.unix_user,
        User.deactivated_us,
        Member.node,
        Member.node_rank,
        Member.nonce,
    )
    .join(Job, Job.id == Attempt.job_id)
    .join(User, User.id == Job.user_id)
    .join(Member, Member.attempt_id == Attempt.id)
    .where(Attempt.id == bindparam("attempt"))
)
_DEVICES = (
    select(Device.uuid, Device.index, Device.kind, Device.name, Device.memory, Device.unusable)
    .join(Allocation, and_(Allocation.node == Device.node, Allocation.uuid == Device.uuid))
    .where(Allocation.attempt_id == bindparam("attempt"), Allocation.node == bindparam("node"))
    .order_by(Device.index)
)


def _member(tx: Connection, attempt_id: AttemptId, node: str) -> _LaunchedMember:
    members = _LaunchedMember.all(tx.execute(_MEMBERS, {"attempt": attempt_id}))
    if not members:
        raise not_found("attempt", attempt_id)
    for member in members:
        if member.node == node:
            return member
    raise ProblemError("forbidden", f"Attempt {attempt_id} has no part on node {node}: use that node's own token.")


def _devices(tx: Connection, attempt_id: AttemptId, node: str) -> list[wire.Device]:
    rows = tx.execute(_DEVICES, {"attempt": attempt_id, "node": node})
    return [wire.Device(**row._mapping) for row in rows]
