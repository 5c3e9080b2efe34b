"""Estimates of the time that jobs will still run: from their steps, the history of their like, their limit. Pure.

The quantiles here are raw: `service.estimation.calibration` corrects them by what earlier ones turned out to be worth.
Times are integer microseconds.
"""

import hashlib
import json
import math
import string
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from service.db.records.spec import StoredSpec
from service.scheduler.model.jobs import EstimateSource

#: Jobs of one history that count, the newest.
WINDOW = 64
#: Jobs that a history of a whole user or project must have; one's own kind is worth something from the first.
LEAST = 3
#: A history of few jobs is widened by two imagined ones, so many times shorter and longer than the median.
WIDER = 4
#: Steps must have been watched for so long before they tell the speed.
WATCHED_US = 10 * 1_000_000
#: Standard normal quantile of 0.9.
_Z90 = 1.2816
#: Of the logarithm of what is left: what any speed is off by, and what one step's is.
_SPEED_ERROR, _STEP_ERROR = 0.05, 0.5
#: Of a time limit: what a job takes of it, before anything is known of limits here.
_OF_LIMIT = (0.1, 0.5, 1.0)
#: Bases of estimates from a job's own steps.
REPORTED_BASIS, PRINTED_BASIS = "progress", "progress-printed"
QUANTILES = (0.1, 0.5, 0.9)
#: Letters that no number begins with, though "inf" and "nan" are numbers: to ask `float` costs ten times as much.
_NO_NUMBER = frozenset(string.ascii_letters) - frozenset("iInN") | {"/", ""}


class Quantiles(NamedTuple):
    """Running time to come: one in ten such jobs is done by `p10`, half by `p50`, nine by `p90`."""

    p10: int
    p50: int
    p90: int


class RawEstimate(NamedTuple):
    """An estimate before its correction. `basis` is what it was made of; estimates of one basis err alike."""

    source: EstimateSource
    basis: str
    quantiles: Quantiles


class HistoryKey(NamedTuple):
    """Key of a history, which its jobs have in common: project, user (an id) and the kind of work."""

    project: str
    user: str
    work: str

    @classmethod
    def parse(cls, key: str) -> "HistoryKey":
        """Read the key from what `str` made of it; `ValueError` for anything else."""
        project, user, work = key.split("/", 2)
        return cls(project, user, work)

    def __str__(self) -> str:
        return f"{self.project}/{self.user}/{self.work}"


def history_key_of(project: str, user: str, spec: StoredSpec) -> HistoryKey:
    """Return the key of the history that a job of this spec belongs to.

    Trials of a sweep belong together: seeds and fractional numbers (rates, weights) do not count, since they hardly
    change how long a run takes; whole numbers (epochs, sizes) do, and so does the number of GPUs.
    """
    if spec.recipe:
        return HistoryKey(project, user, _digest(spec.total_gpus, _kind(spec.recipe)))
    return HistoryKey(project, user, _digest_of_command(spec.total_gpus, tuple(_kind(spec.command or ()))))


@lru_cache(maxsize=16)
def _digest_of_command(gpus: int, words: tuple[Any, ...]) -> str:
    """Most of what waits are trials of a few sweeps."""
    return _digest(gpus, list(words))


def _digest(gpus: int, kind: Any) -> str:
    text = json.dumps([gpus, kind], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _kind(value: Any) -> Any:
    if isinstance(value, str):  # the most frequent first: a long queue has many words
        return None if _fractional(value) else value
    if isinstance(value, Mapping):
        return {key: _kind(each) for key, each in value.items() if key != "seed"}
    if isinstance(value, list | tuple):
        before = ["", *value]
        return [_kind(each) for last, each in zip(before, value, strict=False) if not _is_seed(last)]
    return None if _fractional(value) else value


def _is_seed(word: Any) -> bool:
    return isinstance(word, str) and word.startswith("-") and word.endswith("seed")


def _fractional(value: Any) -> bool:
    if isinstance(value, str):
        if value[:1] in _NO_NUMBER or value.startswith("--"):
            return False
        try:
            float(value)
        except ValueError:
            return False
        return not value.lstrip("+-").isdecimal()
    return isinstance(value, float)


class History:
    """Running times of jobs that succeeded: of each kind, of each user in each project, of each project."""

    def __init__(self) -> None:
        self._times: defaultdict[HistoryKey, deque[int]] = defaultdict(lambda: deque(maxlen=WINDOW))
        self._ordered: defaultdict[HistoryKey, list[int]] = defaultdict(list)

    def add(self, key: HistoryKey, actual_us: int) -> None:
        """One that has ended; the newest come last."""
        for group, _, _ in _levels(key):
            times, ordered = self._times[group], self._ordered[group]
            if len(times) == WINDOW:
                del ordered[bisect_left(ordered, times[0])]
            times.append(actual_us)
            insort(ordered, actual_us)

    def raw(self, key: HistoryKey, ran_us: int = 0) -> RawEstimate | None:
        """Estimate the rest of a job that has run for `ran_us`; None if nothing is known of its like."""
        known = False
        for group, basis, least in _levels(key):
            times = self._ordered.get(group, ())
            if len(times) < least:
                continue
            known = True
            if longer := times[bisect_right(times, ran_us) :]:
                return RawEstimate(
                    EstimateSource.HISTORY, basis, _quantiles([time - ran_us for time in longer] if ran_us else longer)
                )
        return RawEstimate(EstimateSource.HISTORY, "outrun", _outrun(ran_us)) if known else None


def _levels(key: HistoryKey) -> tuple[tuple[HistoryKey, str, int], ...]:
    """Return histories from the closest to the widest, with their name and the jobs that they must have."""
    return (
        (key, "history", 1),
        (HistoryKey(key.project, key.user, ""), "history-user", LEAST),
        (HistoryKey(key.project, "", ""), "history-project", LEAST),
    )


def _quantiles(ordered: Sequence[int]) -> Quantiles:
    """Return quantiles of the next value, given the earlier ones in order."""
    middle = max(1.0, quantile(ordered, 0.5))
    widened = sorted([middle / WIDER, *ordered, middle * WIDER])
    return Quantiles(*(round(quantile(widened, q)) for q in QUANTILES))


def quantile(ordered: Sequence[float], q: float) -> float:
    """Return the value at rank ``q (n + 1)``: the next one lies below it with probability `q`; within the values."""
    rank = min(max(q * (len(ordered) + 1) - 1, 0), len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (rank - low) * (ordered[high] - ordered[low])


def _outrun(ran_us: int) -> Quantiles:
    """Estimate the rest of a job that has outrun all its like: about as long as it has run.

    That is a tail of index one.
    """
    return Quantiles(ran_us // 9, ran_us, 9 * ran_us)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepProgress:
    """A job's own steps: those to come, and the speed of those that were watched."""

    steps_left: int
    watched_steps: int
    watched_us: int
    #: Since its last report; that much of what was left then is done.
    silent_us: int = 0
    #: From the start of an attempt to its first step; 0 for a job that is past it.
    overhead_us: int = 0
    #: They were read from what the job prints, which its program may not mean for its whole run.
    printed: bool = False

    @property
    def basis(self) -> str:
        return PRINTED_BASIS if self.printed else REPORTED_BASIS


def from_progress(progress: StepProgress) -> RawEstimate | None:
    """Estimate what is left at the speed so far; None while that was not watched long enough."""
    if progress.watched_steps <= 0 or progress.watched_us < WATCHED_US:
        return None
    steps = progress.steps_left * progress.watched_us / progress.watched_steps
    left = progress.overhead_us + max(steps - progress.silent_us, steps / 2)
    factor = math.exp(_Z90 * (_SPEED_ERROR + _STEP_ERROR / math.sqrt(progress.watched_steps)))
    return RawEstimate(
        EstimateSource.PROGRESS, progress.basis, Quantiles(round(left / factor), round(left), round(left * factor))
    )


def from_limit(limit_us: int, ran_us: int = 0) -> RawEstimate:
    """Estimate what is left from the time limit, all of which a job takes at most."""
    left = max(0, limit_us - ran_us)
    return RawEstimate(EstimateSource.LIMIT, "limit", Quantiles(*(round(part * left) for part in _OF_LIMIT)))


@dataclass(frozen=True, kw_only=True, slots=True)
class EstimateInput:
    """A job whose remaining time is asked for."""

    key: HistoryKey
    limit_us: int | None = None
    #: How long its attempts have run, this one so far included.
    ran_us: int = 0
    #: How long the attempt that it runs in has; the limit is on each attempt.
    attempt_us: int = 0
    progress: StepProgress | None = None


def raw(given: EstimateInput, history: History) -> RawEstimate | None:
    """Estimate from the best source that knows anything: steps, history, limit."""
    found = from_progress(given.progress) if given.progress is not None else None
    found = found or history.raw(given.key, given.ran_us)
    if found is None and given.limit_us is not None:
        found = from_limit(given.limit_us, given.attempt_us)
    return found


def capped(quantiles: Quantiles, given: EstimateInput) -> Quantiles:
    """No job runs on beyond its time limit."""
    if given.limit_us is None:
        return quantiles
    left = max(0, given.limit_us - given.attempt_us)
    return Quantiles(*(min(each, left) for each in quantiles))
