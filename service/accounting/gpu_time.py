"""GPU time of an attempt, split over days and kinds of use; pure. Times are microseconds UTC.

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


class UsageKind(StrEnum):
    """Kind of use that GPU time is charged as."""

    #: Work that counts.
    USEFUL = "useful"
    #: Held, but not used.
    IDLE = "idle"
    #: Work of an attempt that failed and that nobody continues.
    FAILED = "failed"
    #: Work that had to be done again after a preemption, a retry or a loss, and starting again.
    LOST = "lost"


class WorkOutcome(StrEnum):
    """Outcome of an attempt's work: kept, failed, or continued by another attempt."""

    #: It counts, or goes on.
    KEPT = "kept"
    #: It ended in failure for good.
    FAILED = "failed"
    #: Another attempt goes on from its newest checkpoint, or from the beginning.
    CONTINUED = "continued"


Split = Counter[tuple[int, UsageKind]]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceOccupancy:
    """One device of an attempt, from its assignment to its release, and when it was seen idle (in order, disjoint)."""

    since_us: int
    until_us: int
    node: str = ""
    #: The attempt's part of the device: `share` of `of`.
    share: int = 1
    of: int = 1
    idle: tuple[Span, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptTimeline:
    """Start, last checkpoint and outcome of an attempt."""

    outcome: WorkOutcome
    #: Its first instruction; None if none ran.
    started_us: int | None
    #: An earlier attempt of the job had run.
    restart: bool = False
    #: When its newest checkpoint was written that can be gone on from.
    saved_us: int | None = None


def split(held: Iterable[DeviceOccupancy], timeline: AttemptTimeline) -> Split:
    """GPU time by day (since 1970-01-01) and kind. The kinds add up to all that was held, to the microsecond."""
    found: Split = Counter()
    for each in held:
        for since, until, kind in _pieces(each, timeline):
            found[since // DAY_US, kind] += _part(each, until) - _part(each, since)
    return found


def release_time(since_us: int, until_us: int, held_us: int, aside_us: int) -> int:
    """Return the time at which a device was free again.

    A node had it for `held_us` by its monotonic clock, and at most `aside_us` passed before and after that. The result
    is `until_us`, unless the wall clock was set meanwhile.
    """
    return min(max(until_us, since_us + held_us), since_us + held_us + aside_us)


def idle_spans(seen: Iterable[tuple[int, float]], bucket_us: int) -> tuple[Span, ...]:
    """Return the spans in which a device did nothing.

    Each ``(bucket number, percent busy)`` stands for its bucket of time.
    """
    spans: list[Span] = []
    for bucket, busy in sorted(seen):
        if busy >= IDLE_BELOW:
            continue
        since = bucket * bucket_us
        if spans and spans[-1][1] == since:
            since = spans.pop()[0]
        spans.append((since, (bucket + 1) * bucket_us))
    return tuple(spans)


def _part(held: DeviceOccupancy, at: int) -> int:
    """Return the attempt's fraction of the device's time until then; rounding here once keeps sums exact."""
    return held.share * (at - held.since_us) // held.of


def _pieces(held: DeviceOccupancy, timeline: AttemptTimeline) -> Iterator[tuple[int, int, UsageKind]]:
    """Yield intervals (start, end, kind), each of one kind and one day."""
    since, until = held.since_us, held.until_us
    phases = _phases(timeline)
    starts = [at for at, _ in phases]
    inner = [*starts, *(edge for span in held.idle for edge in span), *_midnights(since, until)]
    edges = sorted({since, until, *(edge for edge in inner if since < edge < until)}) if since < until else []
    for start, end in pairwise(edges):
        worked = phases[max(0, bisect_right(starts, start) - 1)][1]
        yield start, end, UsageKind.IDLE if _within(held.idle, start) else worked


def _phases(timeline: AttemptTimeline) -> list[tuple[int, UsageKind]]:
    """Return the phases of an attempt as pairs of start and kind; the first phase counts from the beginning."""
    waiting = UsageKind.LOST if timeline.restart else UsageKind.IDLE
    if timeline.started_us is None:
        never = {WorkOutcome.KEPT: waiting, WorkOutcome.FAILED: UsageKind.FAILED, WorkOutcome.CONTINUED: UsageKind.LOST}
        return [(0, never[timeline.outcome])]
    started = max(0, timeline.started_us)
    if timeline.outcome is not WorkOutcome.CONTINUED:
        return [
            (0, waiting),
            (started, UsageKind.FAILED if timeline.outcome is WorkOutcome.FAILED else UsageKind.USEFUL),
        ]
    saved = max(started, timeline.saved_us or 0)
    return [(0, waiting), (started, UsageKind.USEFUL), (saved, UsageKind.LOST)]


def _midnights(since: int, until: int) -> Iterable[int]:
    return range((since // DAY_US + 1) * DAY_US, until, DAY_US)


def _within(spans: Sequence[Span], at: int) -> bool:
    place = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return place >= 0 and at < spans[place][1]
