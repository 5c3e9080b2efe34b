"""What became of the GPU time that an attempt held: split over days and kinds, pure. Times are microseconds UTC.

Time in which a GPU was measured to do nothing is idle, whatever came of the attempt. So is the start of a job's first
attempt, until its first instruction; that of a later one is lost, since without the stop there would be none. What
remains is work: useful if it counts in the end, failed if nobody goes on from it, lost as far as it is done again.

The work of a job that was cancelled counts: somebody, or a sweep, has seen what it is worth. That of one that ran into
its time limit is failed.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

HOUR_US = 3600 * 1_000_000
DAY_US = 24 * HOUR_US
#: A GPU that is busy for less than so many percent of a moment does nothing.
IDLE_BELOW = 5.0

#: From, until.
Span = tuple[int, int]


class Kind(StrEnum):
    """What became of GPU time."""

    #: Work that counts.
    USEFUL = "useful"
    #: Held, but not used.
    IDLE = "idle"
    #: Work of an attempt that failed and that nobody continues.
    FAILED = "failed"
    #: Work that had to be done again after a preemption, a retry or a loss, and starting again.
    LOST = "lost"


class Fate(StrEnum):
    """What became of an attempt's work."""

    #: It counts, or goes on.
    KEPT = "kept"
    #: It ended in failure for good.
    FAILED = "failed"
    #: Another attempt goes on from its newest checkpoint, or from the beginning.
    CONTINUED = "continued"


Split = Counter[tuple[int, Kind]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """One device of an attempt, from its assignment to its release, and when it was seen idle (in order, disjoint)."""

    since_us: int
    until_us: int
    node: str = ""
    #: The attempt's part of the device: `share` of `of`.
    share: int = 1
    of: int = 1
    idle: tuple[Span, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """How an attempt went."""

    fate: Fate
    #: Its first instruction; None if none ran.
    started_us: int | None
    #: An earlier attempt of the job had run.
    restart: bool = False
    #: When its newest checkpoint was written that can be gone on from.
    saved_us: int | None = None


def split(held: Iterable[Held], course: Course) -> Split:
    """GPU time by day (since 1970-01-01) and kind. The kinds add up to all that was held, to the microsecond."""
    found: Split = Counter()
    for each in held:
        for since, until, kind in _pieces(each, course):
            found[since // DAY_US, kind] += _part(each, until) - _part(each, since)
    return found


def steady(since_us: int, until_us: int, held_us: int, aside_us: int) -> int:
    """When a device was free again that a node had for `held_us` by a clock that nobody sets, and that was held for at
    most `aside_us` before and after it: `until_us` unless the clock by which that was told has been set meanwhile.
    """
    return min(max(until_us, since_us + held_us), since_us + held_us + aside_us)


def idle_spans(seen: Iterable[tuple[int, float]], bucket_us: int) -> tuple[Span, ...]:
    """Spans in which a device did nothing: each ``(bucket number, percent busy)`` stands for its bucket of time."""
    spans: list[Span] = []
    for bucket, busy in sorted(seen):
        if busy >= IDLE_BELOW:
            continue
        since = bucket * bucket_us
        if spans and spans[-1][1] == since:
            since = spans.pop()[0]
        spans.append((since, (bucket + 1) * bucket_us))
    return tuple(spans)


def _part(held: Held, at: int) -> int:
    """The attempt's part of the device's time until then; rounding here once keeps sums exact."""
    return held.share * (at - held.since_us) // held.of


def _pieces(held: Held, course: Course) -> Iterator[tuple[int, int, Kind]]:
    """Stretches of one kind and one day."""
    since, until = held.since_us, held.until_us
    phases = _phases(course)
    starts = [at for at, _ in phases]
    inner = [*starts, *(edge for span in held.idle for edge in span), *_midnights(since, until)]
    edges = sorted({since, until, *(edge for edge in inner if since < edge < until)}) if since < until else []
    for start, end in pairwise(edges):
        worked = phases[max(0, bisect_right(starts, start) - 1)][1]
        yield start, end, Kind.IDLE if _within(held.idle, start) else worked


def _phases(course: Course) -> list[tuple[int, Kind]]:
    """What the time is, and from when on; the first counts from the beginning."""
    waiting = Kind.LOST if course.restart else Kind.IDLE
    if course.started_us is None:
        never = {Fate.KEPT: waiting, Fate.FAILED: Kind.FAILED, Fate.CONTINUED: Kind.LOST}
        return [(0, never[course.fate])]
    started = max(0, course.started_us)
    if course.fate is not Fate.CONTINUED:
        return [(0, waiting), (started, Kind.FAILED if course.fate is Fate.FAILED else Kind.USEFUL)]
    saved = max(started, course.saved_us or 0)
    return [(0, waiting), (started, Kind.USEFUL), (saved, Kind.LOST)]


def _midnights(since: int, until: int) -> Iterable[int]:
    return range((since // DAY_US + 1) * DAY_US, until, DAY_US)


def _within(spans: Sequence[Span], at: int) -> bool:
    place = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return place >= 0 and at < spans[place][1]
