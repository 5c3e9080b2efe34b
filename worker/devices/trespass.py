"""Attempts that use more of the GPUs than they were given: other cards, or more of a shared one than their share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from torchyard.ids import AttemptId
from torchyard.quantities import format_size
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
    given: bool
    """It has a share of the GPU, which is too small."""
    words: str

    def __str__(self) -> str:
        return f"attempt {self.attempt} {self.words}"


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
        words = _words(status, uuid, held) if held else None
        if words is not None:
            given = uuid in status.devices
            yield Trespass(attempt=status.attempt, uuid=uuid, pids=frozenset(held), given=given, words=words)


def _words(status: Status, uuid: str, held: Mapping[int, int | None]) -> str | None:
    """Return what the processes of an attempt do on a GPU that they should not; None if all is well."""
    if uuid not in status.devices:
        which = ", ".join(map(str, sorted(held)))
        return f"used GPU {uuid}, which it was not given (process{'es' if len(held) > 1 else ''} {which})"
    # Of a process that the driver does not tell, nobody can say that it is too much.
    memory = sum(size or 0 for size in held.values())
    if status.gpu_share is None or memory <= status.gpu_share + CONTEXT * len(held):
        return None
    return f"held {format_size(memory)} of GPU {uuid}, of which it has {format_size(status.gpu_share)}"


def confirmed(found: Sequence[Trespass], again: Sequence[Trespass]) -> list[Trespass]:
    """Return those of a second look that the first has seen as well: a pid may be another's by the time of a look."""
    seen = {(each.attempt, each.uuid): each.pids for each in found}
    return [each for each in again if each.pids & seen.get((each.attempt, each.uuid), frozenset())]
