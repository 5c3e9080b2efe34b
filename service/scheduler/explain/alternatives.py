"""Changes of a waiting job's spec that would start it now, each tried by running the policy on the changed job.

Of the changes of one kind (so many GPUs fewer) the first that starts the job at once is proposed, the smallest change
first. Where none of a kind does, the kind's largest change may still be proposed if the job is expected to start much
sooner with it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from service.scheduler.explain.forecast import Expected, likely_start
from service.scheduler.explain.lack import counted
from service.scheduler.model.capacity import NodeCapacity
from service.scheduler.model.decisions import Start
from service.scheduler.model.jobs import IneligibleReason, Waiting
from service.scheduler.model.nodes import Placement
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from service.scheduler.policy.decide import decide
from torchyard.ids import JobId
from torchyard.quantities import format_duration, format_size
from torchyard.spec import PRIORITY_RANK
from torchyard.spec.policy import Policy

_GIB = 2**30
_MINUTE = 60
#: Time limits that are tried, in seconds.
_LIMITS = (86400, 43200, 28800, 14400, 7200, 3600, 1800, 900, 600, 300)
#: Most decisions that may be made, most jobs that they may look at together, and most forecasts that may be run.
MAX_TRIES, MAX_WORK, MAX_FUTURES = 48, 100_000, 2
#: A shorter limit must leave so much to spare: until the change is made, the time that the devices are free shrinks.
SPARE_US = _MINUTE * 1_000_000
#: Changes that are made to the job as it waits; any other makes a new job of it.
IN_PLACE = frozenset({"priority", "time_limit", "held"})


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A change of the spec, by dotted paths (``resources.gpus``); `words` follow "would start"."""

    change: dict[str, Any]
    words: str

    @property
    def in_place(self) -> bool:
        """Return whether the change can be made to the waiting job itself, without submitting a new one."""
        return self.change.keys() <= IN_PLACE


@dataclass(frozen=True, kw_only=True)
class StartingChange:
    """A change with which the job starts now, at `placements`; or, without these, is expected to at `starts_us`."""

    proposal: Proposal
    placements: tuple[Placement, ...] = ()
    starts_us: int | None = None


#: The changed job as it would wait; None if such a job would be refused.
Build = Callable[[Proposal], Waiting | None]


def find(
    state: SchedulerState, job: JobId, now_us: int, policy: Policy, build: Build, expected: Expected
) -> list[StartingChange]:
    """Return the changes that would start the job now; if there is none, those that would much sooner than `expected`.

    KeyError if the job does not wait.
    """
    waiting = state.waiting[job]
    trials = _Trials(state, waiting, now_us, policy, build)
    found, open_kinds = [], []
    for kind in _kinds(state, waiting):
        started = next((each for proposal in kind if (each := trials.now(proposal)) is not None), None)
        if started is None:
            open_kinds.append(kind)
        else:
            found.append(started)
    futures = 0 if found else MAX_FUTURES
    boldest = [kind[-1] for kind in open_kinds[:futures]]
    return found + [each for proposal in boldest if (each := trials.sooner(proposal, expected)) is not None]


class _Trials:
    """Trials of changes on a copy of the state, which is restored after each of them."""

    def __init__(self, state: SchedulerState, waiting: Waiting, now_us: int, policy: Policy, build: Build) -> None:
        self._state, self._waiting = state.copy(), waiting
        self._now_us, self._policy, self._build = now_us, policy, build
        self._next_number = 1 + int(state.table.columns[Column.NUMBER].max())
        self._left = min(MAX_TRIES, max(8, MAX_WORK // (len(state.waiting) + 4 * len(state.running) + 1)))

    def now(self, proposal: Proposal) -> StartingChange | None:
        changed = self._changed(proposal)
        if changed is None or self._left <= 0:
            return None
        self._left -= 1
        if "time_limit" in proposal.change:
            changed = _lasting_longer(changed)
        self._swap(self._waiting, changed)
        decisions = decide(self._state, self._now_us, self._policy)
        self._swap(changed, self._waiting)
        placements = next((d.placements for d in decisions if isinstance(d, Start) and d.job == changed.job), None)
        return None if placements is None else StartingChange(proposal=proposal, placements=placements)

    def sooner(self, proposal: Proposal, than: Expected) -> StartingChange | None:
        """Return the change if the job is expected to start much sooner with it, else None.

        That is in half of the time, or at all forecast where it was not.
        """
        changed = self._changed(proposal)
        if changed is None:
            return None
        self._swap(self._waiting, changed)
        p50 = likely_start(self._state, changed.job, self._now_us, self._policy)
        self._swap(changed, self._waiting)
        if p50 is None or (than.p50_us is not None and 2 * (p50 - self._now_us) > than.p50_us - self._now_us):
            return None
        return StartingChange(proposal=proposal, starts_us=p50)

    def _changed(self, proposal: Proposal) -> Waiting | None:
        built = self._build(proposal)
        if built is None or proposal.in_place:
            return built
        return replace(
            built, job=JobId(f"{built.job}+"), number=self._next_number, eligible_us=self._now_us, ran_us=0, group=None
        )

    def _swap(self, old: Waiting, new: Waiting) -> None:
        self._state.remove(old.job)
        self._state.put([new])


def _lasting_longer(job: Waiting) -> Waiting:
    limit_us = None if job.limit_us is None else job.limit_us + SPARE_US
    left = job.remaining
    longer = left and replace(left, p50_us=left.p50_us + SPARE_US, p90_us=left.p90_us + SPARE_US)
    return replace(job, limit_us=limit_us, remaining=longer)


def _kinds(state: SchedulerState, waiting: Waiting) -> Iterator[list[Proposal]]:
    """Yield the changes of each kind, the smallest change first."""
    if waiting.ineligible is IneligibleReason.HELD:
        yield [Proposal(change={"held": False}, words="if it is released")]
        return
    if waiting.ineligible is not None:
        return
    capacities = [capacity for _, capacity in sorted(state.capacities().items()) if capacity.info.closed is None]
    kinds = [_priority, _fewer_gpus, _nodes, _shared, _limit, _restartable, _sort, _cores]
    if waiting.pinned:  # a pinned job takes no time slices, so this comes first
        kinds.sort(key=lambda propose: propose is not _restartable)
    for propose in kinds:
        kind = list(propose(waiting, capacities))
        if kind:
            yield kind


def _priority(waiting: Waiting, capacities: Sequence[NodeCapacity]) -> Iterable[Proposal]:
    del capacities
    higher = [name for name, rank in PRIORITY_RANK.items() if rank > waiting.priority]
    return (Proposal(change={"priority": each.value}, words=f"with priority {each.value}") for each in higher)


def _fewer_gpus(waiting: Waiting, capacities: Sequence[NodeCapacity]) -> Iterable[Proposal]:
    gpus = waiting.resources.gpus
    fewer = sorted({gpus - 1, *(2**n for n in range(gpus.bit_length()))}, reverse=True)
    where = " on each node" if waiting.nodes > 1 else ""
    return (
        Proposal(change={"resources.gpus": each}, words=f"with {_devices(each, capacities)} instead of {gpus}{where}")
        for each in fewer
        if 0 < each < gpus
    )


def _nodes(waiting: Waiting, capacities: Sequence[NodeCapacity]) -> Iterable[Proposal]:
    gpus, nodes = waiting.resources.gpus, waiting.nodes
    if nodes > 1:
        yield Proposal(
            change={"resources.nodes": 1, "resources.gpus": nodes * gpus},
            words=f"on one node with {_devices(nodes * gpus, capacities)}",
        )
        yield Proposal(change={"resources.nodes": 1}, words=f"on one node with {_devices(gpus, capacities)}")
    elif gpus > 1 and gpus % 2 == 0 and len(capacities) > 1:
        yield Proposal(
            change={"resources.nodes": 2, "resources.gpus": gpus // 2},
            words=f"on two nodes with {_devices(gpus // 2, capacities)} each",
        )


def _shared(waiting: Waiting, capacities: Sequence[NodeCapacity]) -> Iterable[Proposal]:
    """Yield shares of GPUs: the most memory that enough cards of a node have free, the largest first."""
    resources = waiting.resources
    if not resources.gpus:
        return
    spare = {size for capacity in capacities for size in _spare(capacity, resources.gpus)}
    for size in sorted(spare, reverse=True):
        if size >= max(resources.gpu_memory_min, _GIB) and (not resources.gpu_share or size < resources.gpu_share):
            yield Proposal(
                change={"resources.gpu_share": f"{size // _GIB}GiB"},
                words=f"sharing its GPUs with others, in {format_size(size)} of memory on each",
            )


def _spare(capacity: NodeCapacity, gpus: int) -> list[int]:
    sizes = sorted((capacity.spare(slot) // _GIB * _GIB for slot in capacity.usable.values()), reverse=True)
    return [size for size in sizes[gpus - 1 :] if size][:2]


def _limit(waiting: Waiting, capacities: Sequence[NodeCapacity]) -> Iterable[Proposal]:
    """Yield shorter time limits that still cover the job's expected running time, as far as that is known."""
    del capacities
    needs = 0 if waiting.remaining is None else waiting.remaining.p50_us
    for limit in _LIMITS:
        shorter = waiting.limit_us is None or limit * 1_000_000 < waiting.limit_us
        if shorter and limit * 1_000_000 >= needs:
            yield Proposal(change={"time_limit": limit}, words=f"with a time limit of {format_duration(limit)}")


def _restartable(waiting: Waiting, capacities: Sequence[NodeCapacity]) -> Iterable[Proposal]:
    del capacities
    if waiting.pinned:
        yield Proposal(change={"preemptible": None}, words="if it may be stopped for others once it has a checkpoint")
        yield Proposal(change={"preemptible": True}, words="if it may be stopped for others at any time")
    elif not waiting.preemptible:
        words = "if it may be stopped for others and starts again, without a checkpoint from the beginning"
        yield Proposal(change={"restartable": True}, words=words)


def _sort(waiting: Waiting, capacities: Sequence[NodeCapacity]) -> Iterable[Proposal]:
    """Yield changes that let the job run on other GPUs or nodes than those that it asks for."""
    resources, sizes = waiting.resources, {slot.memory for capacity in capacities for slot in capacity.usable.values()}
    for size in sorted((size for size in sizes if size < resources.gpu_memory_min), reverse=True):
        yield Proposal(
            change={"resources.gpu_memory_min": f"{size // _GIB}GiB"},
            words=f"on GPUs with {format_size(size)} of memory",
        )
    if resources.gpu_type:
        yield Proposal(change={"resources.gpu_type": None}, words=f"on GPUs that are no {resources.gpu_type}")
    if resources.labels:
        labels = ", ".join(sorted(resources.labels))
        yield Proposal(change={"resources.labels": None}, words=f"on nodes without the label {labels}")


def _cores(waiting: Waiting, capacities: Sequence[NodeCapacity]) -> Iterable[Proposal]:
    resources = waiting.resources
    cpus, memory = (
        max((r.cpus for r in capacities), default=0),
        max((r.memory for r in capacities), default=0) // _GIB * _GIB,
    )
    if 0 < cpus < resources.cpus:
        yield Proposal(change={"resources.cpus": cpus}, words=f"with {cpus} CPU cores")
    if 0 < memory < resources.memory:
        yield Proposal(
            change={"resources.memory": f"{memory // _GIB}GiB"}, words=f"with {format_size(memory)} of memory"
        )


def _devices(number: int, capacities: Sequence[NodeCapacity]) -> str:
    return counted(number, (capacity.info for capacity in capacities))
