"""The end of an attempt: by its result, or by proof that it is dead."""

from typing import Any, cast

from sqlalchemy import Connection, Select, Table, and_, bindparam, func, select, update

from service.accounting import usage
from service.db.models import Attempt, Event, Job, Member
from service.db.records.attempts import AttemptRecord, MemberRecord
from service.db.records.jobs import EventRecord, JobRecord, StopRequest
from service.db.unit_of_work import unit_of
from service.lifecycle import carry, faults, gang, gang_result, links, outcome, restore
from service.lifecycle.devices import release
from service.lifecycle.exceptions import Conflict, Unknown
from service.lifecycle.notes import Note
from service.lifecycle.rows import CLAIMED, lock_attempt, member_on, members_of, spans_nodes
from service.lifecycle.start import adopt
from service.lifecycle.transitions import move_attempt, move_job
from service.storage import retention
from torchyard.failures import fingerprints
from torchyard.ids import AttemptId
from torchyard.quantities import format_size
from torchyard.states import ATTEMPT_FINAL, JOB_FINAL, AttemptState, JobState, StopReason
from torchyard.wire import Result, ResultKind

_MEMBERS = cast("Table", Member.__table__)
_SETTLE = update(_MEMBERS).where(_MEMBERS.c.attempt_id == bindparam("attempt")).values(settled=bindparam("is_settled"))
_SETTLE_ON = _SETTLE.where(_MEMBERS.c.node == bindparam("on"))
_SETTLE_RANK = _SETTLE.where(_MEMBERS.c.node_rank == bindparam("rank"))
_SET_SAVED = update(cast("Table", Attempt.__table__)).where(Attempt.id == bindparam("attempt")).values(saved=True)
_PARTS = (
    select(Member.node, Attempt.job_id, Job.state)
    .join(Attempt, Attempt.id == Member.attempt_id)
    .join(Job, Job.id == Attempt.job_id)
    .where(Member.attempt_id == bindparam("attempt"))
)
_LOST_BEFORE_START = and_(Attempt.state == AttemptState.LOST, Attempt.started_us.is_(None))
_PORT_RACE = and_(
    Attempt.result["fingerprint"].as_string() == fingerprints.ADDRESS_IN_USE,
    Attempt.result["failed_rank"].as_string().is_(None),
)
_UNLUCKY = select(
    func.count().filter(_LOST_BEFORE_START).label("lost_starts"), func.count().filter(_PORT_RACE).label("port_races")
).where(Attempt.job_id == bindparam("job"))
_NEWEST_STOP: Select[Any] = (
    select(Event.__table__)
    .where(Event.job_id == bindparam("job"), Event.kind == "stop-requested")
    .order_by(Event.seq.desc())
    .limit(1)
)


def finish(tx: Connection, attempt_id: AttemptId, result: Result, now: int, *, node: str | None = None) -> JobState:
    """Take an attempt's result, free its devices and move the job on; return the job's state.

    A result that comes again, or after the attempt was proven dead, changes nothing. Of an attempt on several nodes
    it is the result of the member on `node`.
    """
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state in ATTEMPT_FINAL:
        return job.state
    if result.saved and not attempt.saved:
        tx.execute(_SET_SAVED, {"attempt": attempt_id})
        job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state == AttemptState.ASSIGNED and spans_nodes(job) and result.started_us is None:
        together = gang_result.merge(
            [gang_result.MemberResult(node=member_on(tx, attempt_id, node).node, result=result, learnt_us=now)]
        )
        return _end(tx, job, attempt, together, together, now)
    if attempt.state == AttemptState.ASSIGNED:
        adopt(tx, attempt_id, member_on(tx, attempt_id, node).node, now)
        job, attempt = lock_attempt(tx, attempt_id)
    if spans_nodes(job):
        return _end_member(tx, job, attempt, member_on(tx, attempt_id, node), result, now)
    return _end(tx, job, attempt, result, result, now)


def declare_dead(
    tx: Connection, attempt_id: AttemptId, proof: str, now: int, *, gone: bool = True, node: str | None = None
) -> JobState:
    """End an attempt that left no result, on proof of death (see `service.lifecycle.proof`) or an administrator's
    word; one on several nodes ends its member on `node`.

    Whether its first instruction ran is not known, so it counts as a run and may cost a retry. Unless it is `gone`
    from its node too, a node that comes back still brings what it has of logs, metrics and checkpoints.
    """
    job, attempt = lock_attempt(tx, attempt_id)
    if attempt.state not in CLAIMED:
        raise Conflict(f"attempt {attempt_id} is {attempt.state}: it holds nothing that could be dead")
    member = member_on(tx, attempt_id, node)
    tx.execute(_SETTLE_RANK, {"attempt": attempt_id, "rank": member.node_rank, "is_settled": gone})
    stored = Result(kind=ResultKind.LOST, message=proof, started_us=attempt.started_us, ended_us=now)
    judged = stored.model_copy(update={"started_us": attempt.started_us or attempt.claimed_us})
    if spans_nodes(job):
        return _end_member(tx, job, attempt, member, judged, now)
    return _end(tx, job, attempt, stored, judged, now)


def _end_member(
    tx: Connection, job: JobRecord, attempt: AttemptRecord, member: MemberRecord, result: Result, now: int
) -> JobState:
    """End one member of an attempt on several nodes, and with the last one the attempt."""
    together = gang.end(tx, job, attempt, member, result, now)
    job, attempt = lock_attempt(tx, attempt.id)
    return job.state if together is None else _end(tx, job, attempt, together, together, now)


def settle(tx: Connection, attempt_id: AttemptId, node: str) -> bool:
    """Record that the service has all of the member on the node, which may forget its folder.

    Return whether the job's next attempt begins with its files.
    """
    parts = {part.node: part for part in tx.execute(_PARTS, {"attempt": attempt_id})}
    if node not in parts:
        raise Unknown(f"attempt {attempt_id} has no part on node {node}")
    tx.execute(_SETTLE_ON, {"attempt": attempt_id, "on": node, "is_settled": True})
    links.learn(tx, attempt_id, sorted(parts))
    unit_of(tx).tell_job(parts[node].job_id)
    unit_of(tx).tell(f"logs:{attempt_id}")
    # A job may wait to start again from a checkpoint that is stored only now, or be put back while this is written.
    if parts[node].state not in JOB_FINAL:
        unit_of(tx).wake_scheduler()
    return attempt_id in carry.awaited(tx, [attempt_id])


def _end(tx: Connection, job: JobRecord, attempt: AttemptRecord, stored: Result, judged: Result, now: int) -> JobState:
    """End an attempt and move its job on; return the job's state.

    `stored` is the result that is kept, `judged` the one that is decided by: an attempt that was declared dead is taken
    to have begun, though nobody knows when.
    """
    decision = outcome.decide(_inputs(tx, job, attempt), judged)
    attempt = move_attempt(
        tx,
        attempt,
        decision.attempt_state,
        result=stored.model_dump(mode="json"),
        started_us=attempt.started_us or stored.started_us,
        ended_us=max(stored.ended_us, attempt.started_us or stored.started_us or 0),
    )
    unit_of(tx).tell(f"logs:{attempt.id}")  # its end, which those who follow it wait for
    release(tx, attempt.id, now)
    faults.condemn(tx, job, attempt.id, judged)
    if decision.job_state is JobState.QUEUED:
        _requeue(tx, job, attempt, decision, now)
    else:
        _conclude(tx, job, attempt, decision, stored, now)
    # Last: jobs are locked before accounts by everybody, and this end may have locked those that waited for the job.
    spared = not job.attempt_counts(attempt.number) and decision.job_state is JobState.QUEUED
    usage.charge(tx, attempt.id, decision.job_state, now, first_us=job.started_us, to_share=not spared)
    return decision.job_state


def _conclude(
    tx: Connection, job: JobRecord, attempt: AttemptRecord, decision: outcome.AttemptOutcome, stored: Result, now: int
) -> None:
    """End the job with its attempt."""
    spared = _spared_memory(job, stored)
    held = (
        f"; it held {spared['held']} at most of the {spared['asked']} that it asked for of each GPU" if spared else ""
    )
    note = Note(
        kind=decision.kind,
        message=f"{decision.message}{held}",
        actor=_actor(job, decision),
        data={**decision.data, **spared},
    )
    error = decision.error.model_dump(mode="json") if decision.error else None
    move_job(
        tx,
        job,
        decision.job_state,
        note,
        now,
        error=error,
        started_us=job.started_us or stored.started_us,
        ended_us=max(stored.ended_us, job.started_us or stored.started_us or 0),
        ran_us=job.ran_us + _ran_us(attempt),
        **_stop_seen(job, stored),
    )


def _spared_memory(job: JobRecord, result: Result) -> dict[str, str]:
    """Return how much of a GPU it held where that is less than half of what it asked for: others could have had it."""
    asked, held = job.spec.gpu_memory, result.gpu_memory_peak
    if not asked or not held or 2 * held > asked:
        return {}
    return {"held": format_size(held), "asked": format_size(asked)}


def _requeue(
    tx: Connection, job: JobRecord, attempt: AttemptRecord, decision: outcome.AttemptOutcome, now: int
) -> None:
    """Let the job wait for another attempt, which starts from its checkpoint if there is one.

    Of an attempt that does not count, since its job was put back after a trial, the outputs are forgotten.
    """
    checkpoint = restore.choose(tx, job, [member.node for member in members_of(tx, attempt.id)])
    resume = f"; resumes from step {checkpoint.step}" if checkpoint else ""
    if tried := not job.attempt_counts(attempt.number):
        retention.forget_outputs(tx, job.id, attempt.id)
        resume = resume or "; starts from the beginning"
    error = {"error": decision.error.model_dump(mode="json")} if decision.error else {}
    resumes = {"resumes": checkpoint.step if checkpoint else None, "restarts": tried and checkpoint is None}
    note = Note(kind=decision.kind, message=f"{decision.message}{resume}", data={**decision.data, **error, **resumes})
    move_job(
        tx,
        job,
        JobState.QUEUED,
        note,
        now,
        queued_us=now,
        retries_used=job.retries_used + decision.spend_retry,
        retry_us=now + decision.pause_s * 1_000_000 if decision.pause_s else None,
        ran_us=job.ran_us + _ran_us(attempt),
        preemptions=job.preemptions + (decision.preempted and not tried),
        restore_checkpoint=checkpoint.id if checkpoint else job.restore_checkpoint,
        stop=None,
        stop_actor=None,
    )


def _ran_us(attempt: AttemptRecord) -> int:
    """Return how long the attempt ran; 0 if it never did."""
    if attempt.started_us is None or attempt.ended_us is None:
        return 0
    return max(0, attempt.ended_us - attempt.started_us)


def _inputs(tx: Connection, job: JobRecord, attempt: AttemptRecord) -> outcome.AttemptInputs:
    lost_starts, port_races = _unlucky(tx, attempt)
    return outcome.AttemptInputs(
        stop=job.stop,
        preemptor={"preemptor": ""} if attempt.yielding is None else attempt.yielding.told,
        asked=_stop_detail(tx, job) if job.stop in {StopReason.EARLY, StopReason.HUNG} else "",
        retries_used=job.retries_used,
        spoiled=carry.spoiled(tx, attempt),
        faults=faults.in_a_row(tx, attempt),
        max_retries=job.spec.max_retries,
        requeues_idle=job.spec.requeues_idle,
        lost_starts=lost_starts,
        port_races=port_races,
    )


def _unlucky(tx: Connection, attempt: AttemptRecord) -> tuple[int, int]:
    """Count the job's attempts that were lost before their start, and those beaten to their port."""
    if attempt.number == 1:  # this one, which has no result yet
        return 0, 0
    found = tx.execute(_UNLUCKY, {"job": attempt.job_id}).one()
    return found.lost_starts, found.port_races


def _stop_detail(tx: Connection, job: JobRecord) -> str:
    """Return why the job was asked to stop, as `stop.request_stop` has stored it; empty if nobody has."""
    event = EventRecord.first(tx.execute(_NEWEST_STOP, {"job": job.id}))
    if event is None:
        return ""
    asked = StopRequest.model_validate(event.data)
    return event.message if asked.detail is None else asked.detail


def _actor(job: JobRecord, decision: outcome.AttemptOutcome) -> str | None:
    return job.stop_actor if decision.job_state is JobState.CANCELLED else None


def _stop_seen(job: JobRecord, result: Result) -> dict[str, Any]:
    """Return the stop that the result tells: the time limit is the node's own, and the job learns of it so."""
    return {"stop": result.stop} if job.stop is None and result.stop is StopReason.TIMEOUT else {}
