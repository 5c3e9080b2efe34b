"""Who comes first: every job gets one number, and the smaller one goes first.

The number's whole part is the class: the priority's rank, and in the order `fair` one more for every `class_age` that
the job has waited. Before all classes come jobs that have waited for `longest_wait`, the longest first. Within a
class:

- `fair`: a job of which nothing is known yet, and that has not run for a time slice, comes first, in the order of
  numbers: after the slice its own steps tell how long it will take. If they do not, earlier jobs of its sort do; and
  failing these, it is expected to run for as long again as it has run. The others go by `remaining / sqrt(1 + age in
  days)`, times the excess of their user and of their project (`shares`), each to the power of 0.3. The root, because
  a longer life for the old ones costs the mean much and wins nothing at the end; the power, because it is enough to
  keep users with different appetites even, and more of it keeps short jobs waiting (both found by simulation: `yard
  simulate`).
- `fifo`: by number. `sjf`, `srtf`: by the time that is left, from an oracle. `las`: those that have had less GPU time
  than `LAS_THRESHOLD_US` before the others, by number within both (Tiresias, Gu et al. 2019).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.scheduler.shares import Shares, shares
from service.scheduler.table import Bools, Column, Floats, Table
from torchyard.policy import Order, Policy

if TYPE_CHECKING:
    from service.scheduler.state import State

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
#: GPU time after which `las` puts a job into the second queue.
LAS_THRESHOLD_US = 3_600 * _SECOND
#: Rank of jobs that have waited for the longest: no class comes near it.
_OLDEST = 1000.0
#: What a job of which nothing is known counts at least, once it has been tried.
_UNKNOWN_US = 60 * _SECOND


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranks:
    """Columns of a table's jobs, as of one moment."""

    #: The smaller goes first; equals by number.
    key: Floats
    #: Whole part of the key: higher classes are smaller.
    level: Floats
    #: What the order compares within a class: microseconds where it is about time.
    score: Floats
    #: Running time that they are taken to need still, in microseconds.
    left: Floats
    #: They have waited for so long that nothing overtakes or preempts them.
    oldest: Bools


def ranks(state: "State", table: Table, now_us: int, policy: Policy, excess: Shares | None = None) -> Ranks:
    """The rank of each job of one of the state's tables."""
    running = table is state.held
    left = remaining(state, table, now_us, policy)
    if policy.order is Order.FAIR:
        score = _fair(table, left, now_us, excess or shares(state, now_us, policy))
    else:
        score = _PLAIN[policy.order](state, table, left, now_us)
    level = -table.column(Column.PRIORITY)
    if policy.order is not Order.FAIR:
        nobody = np.zeros(len(table), dtype=bool)
        return Ranks(key=level + _squeezed(score), level=level, score=score, left=left, oldest=nobody)
    waited = table.column(Column.WAITED) if running else now_us - table.column(Column.WAITED)
    level -= np.floor(waited / (policy.class_age * _SECOND))
    oldest = waited >= policy.longest_wait * _SECOND
    key = level + _squeezed(score)
    if oldest.any():
        level[oldest] = -_OLDEST
        key[oldest] = -_OLDEST - waited[oldest] / (policy.longest_wait * _SECOND)
    return Ranks(key=key, level=level, score=score, left=left, oldest=oldest)


def order(state: "State", now_us: int, policy: Policy) -> list[str]:
    """All waiting jobs in the order in which a decision looks at them; those that something hinders are last."""
    excess = shares(state, now_us, policy)
    found: list[str] = []
    for table in (state.queue, state.aside):
        key = ranks(state, table, now_us, policy, excess).key
        rows = np.lexsort((table.column(Column.NUMBER), key))
        found += [table.jobs[row] for row in rows.tolist()]
    return found


def _squeezed(score: Floats) -> Floats:
    """From 0 to 1, in the same order."""
    return score / (score + _DAY)


def remaining(state: "State", table: Table, now_us: int, policy: Policy) -> Floats:
    """Running time that each job is taken to need still, in microseconds; 0 for those that are to be tried first."""
    known = table.column(Column.LEFT)
    ran = table.column(Column.RAN)
    if table is state.held:
        known = np.maximum(known - np.maximum(now_us - table.column(Column.AS_OF), 0), 1)
        ran = ran + now_us
    unknown = np.isnan(known)
    if not unknown.any():
        return known
    guess = table.column(Column.GUESS)
    trial = (policy.time_slice or 0) * _SECOND
    told = np.where(np.isnan(guess), np.maximum(ran, _UNKNOWN_US), guess)
    return np.where(unknown, np.where(ran < trial, 0, told), known)


def _fair(table: Table, left: Floats, now_us: int, excess: Shares) -> Floats:
    age = np.maximum(now_us - table.column(Column.BORN), 0)
    score: Floats = left / np.sqrt(1 + age / _DAY) * factor(excess)[table.lane]
    return score


def factor(excess: Shares) -> Floats:
    """By how much each lane's jobs count longer because of what their user and project have had."""
    found: Floats = (np.maximum(excess.users, 0.05) * np.maximum(excess.projects, 0.05)) ** 0.3
    return found


def _number(state: "State", table: Table, left: Floats, now_us: int) -> Floats:
    del state, left, now_us
    return table.column(Column.NUMBER) * 1.0


def _left(state: "State", table: Table, left: Floats, now_us: int) -> Floats:
    del state, table, now_us
    return left


def _las(state: "State", table: Table, left: Floats, now_us: int) -> Floats:
    del left
    ran = table.column(Column.RAN) + (now_us if table is state.held else 0)
    second = ran * state.lanes.gpus[table.lane] >= LAS_THRESHOLD_US
    return table.column(Column.NUMBER) + np.where(second, LAS_BEHIND, 0.0)


#: Beyond all numbers of jobs: what sets the two queues of `las` apart.
LAS_BEHIND = 1e12

_PLAIN: dict[Order, Callable[["State", Table, Floats, int], Floats]] = {
    Order.FIFO: _number,
    Order.SJF: _left,
    Order.SRTF: _left,
    Order.LAS: _las,
}
