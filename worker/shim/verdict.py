"""The attempt's outcome: exit codes of the ranks, and which of them failed first."""

import json
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from worker.shim.files import Json, names_in, read_mark

_BEGUN = re.compile(r"exit-(\d{1,9})\.json\.\d+")
#: Characters of a job's own words that are kept, and bytes of what they are made of, as JSON.
MAX_WORDS = 1000
MAX_PARTS = 8192


class Exit(NamedTuple):
    """One rank's end: a code or a signal."""

    rank: int
    exit_code: int | None
    signal: int | None
    ended_us: int


def exit_of(status: int | None) -> tuple[int | None, int | None]:
    """Exit code or signal in a wait status; neither for a process that could not be killed."""
    if status is None:
        return None, None
    code = os.waitstatus_to_exitcode(status)
    return (code, None) if code >= 0 else (None, -code)


def ranks_of(launch: Json) -> range:
    """The ranks of this node; none when there is no launch file."""
    first = launch.get("first_rank", 0)
    return range(first, first + launch.get("local_world_size", 0))


def marked_exits(
    marks: str, ranks: range, owners: set[int | None], moment: Callable[[int], int] | None = None
) -> list[Exit]:
    """Return the exits that rank wrappers noted; a rank whose wrapper was killed is missing.

    `moment` turns the steady clock into the caller's; without it the times are those of the wall clock.
    """
    found = (_marked_exit(marks, rank, owners, moment) for rank in ranks)
    return [each for each in found if each is not None]


def _marked_exit(marks: str, rank: int, owners: set[int | None], moment: Callable[[int], int] | None) -> Exit | None:
    mark = read_mark(os.path.join(marks, f"exit-{rank}.json"), owners) or {}
    ended_us, steady_us = _integer(mark, "ended_us"), _integer(mark, "steady_us")
    if ended_us is None:
        return None
    if moment is not None and steady_us is not None:
        ended_us = moment(steady_us)
    return Exit(rank, _integer(mark, "exit_code"), _integer(mark, "signal"), ended_us)


def killed_exits(
    marks: str, ranks: range, owners: set[int | None], orphans: Mapping[int, tuple[int, int]]
) -> list[Exit]:
    """Return the exits of ranks whose wrappers were killed before they could note them.

    A program dies with its wrapper and is then the shim's to collect: `orphans` has the wait status and the moment of
    each such process by its pid, which the wrapper had noted.
    """
    found = []
    for rank, pid in _begun(marks, ranks, owners):
        if pid in orphans:
            status, ended_us = orphans[pid]
            found.append(Exit(rank, *exit_of(status), ended_us))
    return found


def _begun(marks: str, ranks: range, owners: set[int | None]) -> Iterator[tuple[int, int]]:
    """Ranks of which the mark is not finished, with the pid of each one's program."""
    names = names_in(marks)
    for name in names:
        match = _BEGUN.fullmatch(name)
        if match and int(match[1]) in ranks and f"exit-{match[1]}.json" not in names:
            pid = _integer(read_mark(os.path.join(marks, name), owners) or {}, "pid")
            if pid is not None:
                yield int(match[1]), pid


def _integer(mark: Json, name: str) -> int | None:
    value = mark.get(name)
    return value if type(value) is int and 0 <= value < 2**62 else None


def first_failure(exits: Iterable[Exit], before_us: int | None) -> Exit | None:
    """The rank that failed first, among those that ended before a moment if one is given.

    torchrun terminates the other ranks when one fails, so an exit by SIGTERM counts last.
    """
    failed = [each for each in exits if each.exit_code != 0 and (before_us is None or each.ended_us < before_us)]
    return min(failed, key=lambda each: (each.signal == signal.SIGTERM, each.ended_us), default=None)


def stopped_at_step(outcome: str, owners: set[int | None]) -> int | None:
    """The step that rank 0 wrote down after a clean stop."""
    return _integer(read_mark(outcome, owners) or {}, "stopped_at_step")


def unsaved(outcome: str, owners: set[int | None]) -> str | None:
    """Return why nothing was saved at a stop, in the words of the rank that could not."""
    words = (read_mark(outcome, owners) or {}).get("unsaved")
    return words[:MAX_WORDS] if isinstance(words, str) and words else None


def unsaved_parts(outcome: str, owners: set[int | None]) -> Any:
    """Return what those words are made of, as the rank tells it: the service looks whether it is of the right form."""
    parts = (read_mark(outcome, owners) or {}).get("parts")
    return parts if len(json.dumps(parts)) <= MAX_PARTS else None
