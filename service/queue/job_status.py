"""Status of a job that does not wait: its node and its expected end, the reason of its stop, its preemptor."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, exists, select
from sqlalchemy.orm import aliased

from service import lifecycle
from service.artifacts import carry
from service.attempts import tracked
from service.db.models import Attempt, Event, Job, Member, MetricSeries, Node
from service.db.records.attempts import PendingPreemption
from service.db.records.jobs import JobRecord
from service.infra import times
from service.infra.times import minute, moment
from service.preemption.handshake import job_of
from service.queue import titles
from service.scheduler.model.jobs import EstimateSource, Running
from service.scheduler.model.nodes import ClosedReason, LinkType, Slot
from service.scheduler.model.state import SchedulerState
from torchyard.api import Reason, Why
from torchyard.quantities import format_duration
from torchyard.spec import HangPolicy
from torchyard.states import JobState, StopReason

_STOPPED = {
    StopReason.CANCEL: "it was cancelled",
    StopReason.TIMEOUT: "it ran into its time limit",
    StopReason.IDLE: "it did nothing for longer than its idle limit",
    StopReason.HUNG: "it made no step any more",
    StopReason.EARLY: "other trials of its sweep do better",
    StopReason.PREEMPT: "it was preempted",
    StopReason.DRAIN: "its node is draining",
}
_LINKS = {
    LinkType.NVLINK: "joined by NVLink",
    LinkType.PIX: "behind one PCIe switch",
    LinkType.PXB: "behind PCIe switches that are joined",
    LinkType.PHB: "behind one PCIe host bridge",
    LinkType.NODE: "on one NUMA node",
    LinkType.SYS: "on several NUMA nodes",
}
_SOURCES = {
    EstimateSource.PROGRESS: "the speed of its own steps",
    EstimateSource.HISTORY: "earlier jobs like it",
    EstimateSource.LIMIT: "its time limit",
    EstimateSource.ORACLE: "what is known of it",
}


def why(tx: Connection, job: JobRecord, running: Running | None, state: SchedulerState, now: int) -> Why:
    """Return the status of a job that does not wait; `running` is the policy's model of one that holds devices."""
    code, message = _state(tx, job)
    reasons = [Reason(code=code, message=message, params=_params(tx, job)), *_arriving(tx, job)]
    ends: tuple[int, int] | None = None
    if running is not None:
        reasons += _place(running, state) + _preempted_for(tx, job) + _joining(tx, job) + unwatched(tx, job, now)
        ends = expected_end(running, state, now)
        reasons += _progress(running, ends)
    return Why(
        state=job.state,
        summary=f"Job {job.number} {message}.",
        reasons=reasons + before(tx, job),
        position=None,
        expected_start_at=None,
        expected_end_at=None if ends is None else minute(ends[0]),
        expected_end_p90_at=None if ends is None else minute(ends[1]),
    )


def before(tx: Connection, job: JobRecord) -> list[Reason]:
    """Return the reason why its last attempt went back to the queue, if one did; a preemption names the preemptor."""
    kinds = Event.kind.in_(("requeued", "preemption-abandoned"))
    query = select(Event.kind, Event.message, Event.data).where(Event.job_id == job.id, kinds)
    last = tx.execute(query.order_by(Event.seq.desc()).limit(1)).one_or_none() if job.attempt else None
    if last is None:
        return []
    params = {"kind": last.kind, "said": last.message, "data": last.data or {}}
    return [Reason(code="before", message=f"what happened to it before: {last.message}", params=params)]


def _state(tx: Connection, job: JobRecord) -> tuple[str, str]:
    """Return a slug, and the words that follow "Job 7 …"."""
    state = job.state
    match state:
        case JobState.SUCCEEDED:
            return state.value, "succeeded"
        case JobState.FAILED:
            return _failed(job)
        case JobState.CANCELLED:
            early = job.stop == StopReason.EARLY
            return state.value, f"was stopped early: {_stopped(job)}" if early else f"was cancelled{_by(job)}"
        case JobState.STOPPING:
            return state.value, f"is stopping because {_stopped(job)}"
    node = _node_of(tx, job)
    words = {
        JobState.ASSIGNED: f"has what it asked for; its launch is on the way to node {node}",
        JobState.STARTING: f"is being prepared on node {node}: code and environment",
        JobState.RUNNING: f"has been running on node {node}{_since(tx, job)}",
        JobState.UNREACHABLE: f"may still be running on node {node}, which is silent: it is not started again before "
        "the node is back, or an administrator says that it is gone",
    }
    return state.value, words[state]


def _params(tx: Connection, job: JobRecord) -> dict[str, Any]:
    """Return what the message of a state is made of; nothing where an error speaks."""
    match job.state:
        case JobState.FAILED | JobState.SUCCEEDED:
            return {}
        case JobState.CANCELLED | JobState.STOPPING:
            return {"stop": job.stop or "", "by": job.stop_actor or ""}
    return {"node": _node_of(tx, job), **(_times(tx, job) if job.state is JobState.RUNNING else {})}


def _failed(job: JobRecord) -> tuple[str, str]:
    if job.error is None:
        return "failed", "failed: no reason is known"
    return job.error.cause, f"failed: {job.error.message}"


def _stopped(job: JobRecord) -> str:
    if job.stop is None:
        return "its part on one of its nodes has failed"
    return f"{_STOPPED[job.stop]}{_by(job)}"


def _by(job: JobRecord) -> str:
    return f" by {job.stop_actor}" if job.stop_actor else ""


def _node_of(tx: Connection, job: JobRecord) -> str:
    query = (
        select(Member.node)
        .join(Attempt, Attempt.id == Member.attempt_id)
        .where(Attempt.job_id == job.id, Attempt.number == job.attempt)
        .order_by(Member.node_rank)
    )
    return ", ".join(tx.scalars(query))


def _since(tx: Connection, job: JobRecord) -> str:
    found = _times(tx, job)
    since = f" since {found['since']}" if "since" in found else ""
    return f"{since}; it first started on {found['first']}" if "first" in found else since


def _times(tx: Connection, job: JobRecord) -> dict[str, str]:
    """Return the start of the attempt that holds the devices, and the job's own where that was its first's."""
    query = select(Attempt.started_us).where(Attempt.job_id == job.id, Attempt.number == job.attempt)
    started_us = tx.scalar(query)
    if started_us is None:
        return {}
    since = {"since": times.words(moment(started_us), "seconds")}
    if job.started_us is None or job.started_us >= started_us:
        return since
    return since | {"first": times.words(moment(job.started_us), "seconds")}


def _arriving(tx: Connection, job: JobRecord) -> list[Reason]:
    """Return the nodes that have yet to bring files which a job that is being prepared begins with."""
    if job.state not in {JobState.ASSIGNED, JobState.STARTING}:
        return []
    earlier, of = aliased(Attempt), aliased(Job)
    query = (
        select(Member.node, earlier.number.label("attempt"), of.number)
        .join(Attempt, Attempt.carried_from == Member.attempt_id)
        .join(earlier, earlier.id == Attempt.carried_from)
        .join(of, of.id == earlier.job_id)
        .join(Node, Node.name == Member.node)
        .where(Attempt.job_id == job.id, Attempt.number == job.attempt, ~Member.settled, ~Node.unreachable)
        .order_by(Member.node_rank)
    )
    rows = tx.execute(query).all()
    if not rows:
        return []
    nodes, wait = ", ".join(row.node for row in rows), format_duration(carry.SETTLE_TIMEOUT_US // 1_000_000)
    message = (
        f"waits for files of attempt {rows[0].attempt} of job {rows[0].number} from node {nodes}, no longer than "
        f"{wait} after its end"
    )
    params = {"node": nodes, "attempt": rows[0].attempt, "number": rows[0].number, "wait": wait}
    return [Reason(code="files-arriving", message=message, params=params)]


def _place(running: Running, state: SchedulerState) -> list[Reason]:
    """Return its devices, and how near they are to each other."""
    found, places = [], []
    for placement in running.placements:
        info = state.nodes.get(placement.node)
        slots = [slot for slot in info.slots if slot.uuid in placement.uuids] if info else []
        if info is None or not slots:
            continue
        word = info.word.removesuffix("s") if len(slots) == 1 else info.word
        indexes = ", ".join(str(slot.index) for slot in slots)
        near = _nearness(slots) if word == "GPUs" else ""
        shared = ", shared with others" if running.resources.gpu_share else ""
        found.append(f"{word} {indexes} of node {placement.node}{near}{shared}")
        unit = "gpu" if word.startswith("GPU") else "cpu"
        link = _slowest(slots) if near else None
        places.append({"node": placement.node, "unit": unit, "indexes": indexes, "link": link.name if link else ""})
    params = {"places": places, "shared": bool(running.resources.gpu_share)}
    return [Reason(code="placement", message=f"has {'; '.join(found)}", params=params)] if found else []


def _nearness(slots: Sequence[Slot]) -> str:
    worst = _slowest(slots)
    return "" if worst is None else f", {_LINKS[worst]}: the nearest that were free"


def _slowest(slots: Sequence[Slot]) -> LinkType | None:
    """Return the slowest link between the GPUs; None where the driver does not tell the links."""
    if any(slot.numa is None and not slot.links for slot in slots):
        return None
    return max(one.link_type(other) for one in slots for other in slots if one.uuid != other.uuid)


def _preempted_for(tx: Connection, job: JobRecord) -> list[Reason]:
    """Return the preemptor for which it is checkpointed and stopped, unless it is stopped for another reason."""
    if job.stop not in {None, StopReason.PREEMPT}:
        return []
    query = select(Attempt.yielding).where(Attempt.job_id == job.id, Attempt.number == job.attempt)
    stored = tx.scalar(query)
    if not stored:
        return []
    pending = PendingPreemption.model_validate(stored)
    message = f"saves its work, to be preempted for {pending.words}"
    jobs = list(job_of(pending.preemptor))
    named = [{"number": row.number, "user": row.user} for row in titles.load(tx, jobs).values()]
    params = {"jobs": named, "more": 0, "said": pending.words, "preemptor_params": pending.params}
    return [Reason(code="giving-way", message=message, jobs=jobs, params=params)]


def _joining(tx: Connection, job: JobRecord) -> list[Reason]:
    """Return the notice that no rank has joined a process group, while nothing newer was seen of them."""
    if job.state != JobState.RUNNING:
        return []
    kinds = Event.kind.in_((lifecycle.UNJOINED, lifecycle.JOINED))
    query = select(Event.kind, Event.message).where(Event.job_id == job.id, Event.attempt == job.attempt, kinds)
    last = tx.execute(query.order_by(Event.seq.desc()).limit(1)).one_or_none()
    return [Reason(code=last.kind, message=last.message)] if last and last.kind == lifecycle.UNJOINED else []


def unwatched(tx: Connection, job: JobRecord, now: int) -> list[Reason]:
    """Return the notice on a run without reported steps, which is not watched for hanging; none before `hang.after`."""
    if job.state != JobState.RUNNING or job.spec.recipe is not None:
        return []
    reported = exists().where(
        MetricSeries.attempt_id == Attempt.id, MetricSeries.last_time_us.is_not(None), tracked.REPORTED
    )
    of_run = (Attempt.job_id == job.id, Attempt.number == job.attempt, ~reported)
    started_us = tx.scalar(select(Attempt.started_us).where(*of_run))
    hang = HangPolicy.model_validate(job.spec.data.get("hang") or {})
    if started_us is None or now - started_us < hang.after * 1_000_000:
        return []
    message = (
        "has reported no step, so it is not watched for hanging (hang): `torchyard.report(step=step, loss=loss)` in "
        "its script reports them"
    )
    return [Reason(code="unwatched", message=message)]


def expected_end(running: Running, state: SchedulerState, now: int) -> tuple[int, int] | None:
    """Return when a job that holds devices ends, in half of such cases and in nine of ten; None if nobody knows, as of
    one on a node that is not heard.
    """
    nodes = (state.nodes.get(placement.node) for placement in running.placements)
    if any(node is not None and node.closed is ClosedReason.UNREACHABLE for node in nodes):
        return None
    left = running.remaining
    if left is None:
        return None if running.ends_us is None else (running.ends_us, running.ends_us)
    as_of_us = now if left.as_of_us is None else left.as_of_us
    p50, p90 = (max(now, as_of_us + each) for each in (left.p50_us, left.p90_us))
    return (p50, p90) if running.ends_us is None else (min(p50, running.ends_us), min(p90, running.ends_us))


def _progress(running: Running, ends: tuple[int, int] | None) -> list[Reason]:
    if ends is None:
        return []
    p50, p90 = (minute(each) for each in ends)
    basis = _SOURCES[running.remaining.source] if running.remaining else "its time limit"
    message = f"ends at about {times.words(p50)}, nine times of ten before {times.words(p90)}, by {basis}"
    source = running.remaining.source.value if running.remaining else EstimateSource.LIMIT.value
    params = {"end": times.words(p50), "late": times.words(p90), "source": source}
    return [Reason(code="end", message=message, until=p50, params=params)]
