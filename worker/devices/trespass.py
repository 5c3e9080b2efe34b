"""Attempts that use more of the GPUs than they were given: other cards, or more of a shared one than their share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from torchyard.ids import AttemptId
from torchyard.quantities import format_size
from torchyard.wire import Finding, FindingCode
from worker.devices import nvml as library
from worker.monitoring.inventory import Status
from worker.shim import table

#: `warn`: who does so is named. `stop`: the attempt is ended as well, and its job fails.
Policy = Literal["warn", "stop"]
#: Bytes of a GPU that each process may hold beyond its share: CUDA's context and NCCL's buffers.
CONTEXT: Final = 2**30


@dataclass(frozen=True, kw_only=True)
class Trespass:
    """The use that an attempt makes of one GPU beyond what it was given."""

    attempt: AttemptId
    uuid: str
    pids: frozenset[int]
    words: str
    sizes: Mapping[str, str] | None = None
    """What it has `held` of the GPU, and its `share`; None: it was not given the GPU at all."""

    def __str__(self) -> str:
        return f"attempt {self.attempt} {self.words}"

    def finding(self) -> Finding | None:
        """Return how it exceeds its share of the GPU; None: it has none, and its processes are offenders."""
        if self.sizes is None:
            return None
        params = {"attempt": self.attempt, "uuid": self.uuid, **self.sizes}
        return Finding(code=FindingCode.OVER_SHARE, message=str(self), params=params)


def find(nvml: library.Nvml, attempts: Callable[[], Sequence[Status]]) -> list[Trespass]:
    """Return every trespass on this machine, as of now.

    What belongs to an attempt is told by the process tree: a variable in its environment could accuse another.
    """
    users = {card.uuid: library.processes(nvml, card) for card in library.cards(nvml)}
    living = [status for status in attempts() if status.living]
    everyone = table.everyone()
    return [each for status in living for each in _of_attempt(status, users, everyone)]


def _of_attempt(
    status: Status, users: Mapping[str, Mapping[int, int | None]], everyone: list[table.Process]
) -> Iterator[Trespass]:
    assert status.shim is not None
    own = {process.pid for process in status.shim.below(everyone)}
    for uuid, pids in users.items():
        held = {pid: memory for pid, memory in pids.items() if pid in own}
        if held and uuid not in status.devices:
            yield _not_given(status, uuid, held)
        elif held:
            yield from _over_share(status, uuid, held)


def _not_given(status: Status, uuid: str, held: Mapping[int, int | None]) -> Trespass:
    which = ", ".join(map(str, sorted(held)))
    words = f"used GPU {uuid}, which it was not given (process{'es' if len(held) > 1 else ''} {which})"
    return Trespass(attempt=status.attempt, uuid=uuid, pids=frozenset(held), words=words)


def _over_share(status: Status, uuid: str, held: Mapping[int, int | None]) -> Iterator[Trespass]:
    # Of a process that the driver does not tell, nobody can say that it is too much.
    memory = sum(size or 0 for size in held.values())
    if status.gpu_share is not None and memory > status.gpu_share + CONTEXT * len(held):
        sizes = {"held": format_size(memory), "share": format_size(status.gpu_share)}
        words = f"held {sizes['held']} of GPU {uuid}, of which it has {sizes['share']}"
        yield Trespass(attempt=status.attempt, uuid=uuid, pids=frozenset(held), words=words, sizes=sizes)


def confirmed(found: Sequence[Trespass], again: Sequence[Trespass]) -> list[Trespass]:
    """Return those of a second look that the first has seen as well: a pid may be another's by the time of a look."""
    seen = {(each.attempt, each.uuid): each.pids for each in found}
    return [each for each in again if each.pids & seen.get((each.attempt, each.uuid), frozenset())]
