"""Who comes first: every job gets one number, and the smaller one goes first.

**Classes** come first. In the order `fair` waiting for `class_age` lifts a job by one class, but only into classes of
which there are jobs: age must not put long jobs before short ones of their own class, which would be first come,
first served.

**Within a class** of the order `fair`:

1. A job of which nothing is known yet, and that has not run for a time slice, by number. After the slice its own
   steps tell how long it will take. If they do not, earlier jobs of its sort do; and failing these, it is expected to
   run for as long again as it has run.
2. The others by `remaining / sqrt(1 + age in days)`, times the excess of their user and of their project (`shares`),
   each to the power of 0.3. The root, because dividing by the age itself costs the mean much and wins nothing at the
   end; the power, because it suffices to keep users with different appetites even, and more of it keeps short jobs
   waiting.

**The overdue have their turns.** A job that has waited for `longest_wait` is overdue. For `TURN_US` of every
`PERIOD_US` the overdue ones, the oldest first, come right behind those of 1. in the highest class, and nobody
preempts them: as many as fit into half of the GPUs, and the oldest in any case. If they came first all the time, a
box that has more work than it can do would serve nobody but them, and every short job would become one of them. (All
found by simulation: `yard simulate`.)

The other orders have neither lifts nor turns. `fifo`: by number. `sjf`, `srtf`: by the time that is left, from an
oracle. `las`: those that have had less GPU time than `LAS_THRESHOLD_US` before the others, by number within both
(Tiresias, Gu et al. 2019).
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
#: Beyond all numbers of jobs: what sets the two queues of `las` apart.
LAS_BEHIND = 1e12
#: The turns of the overdue: so long, of so long each.
TURN_US, PERIOD_US = 36 * 60 * _SECOND, 12 * 3_600 * _SECOND
#: What a job of which nothing is known counts at least, once it has been tried.
_UNKNOWN_US = 60 * _SECOND
#: Where in its class a job stands: the untried from 0, the overdue in their turn, and the others to 1.
_OVERDUE, _OTHERS = 0.125, 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranks:
    """Columns of a table's jobs, as of one moment."""

    #: The smaller goes first; equals by number.
    key: Floats
    #: The class, the highest being the smallest.
    level: Floats
    #: What the order compares within a class: microseconds where it is about time.
    score: Floats
    #: Running time that they are taken to need still, in microseconds; 0 for those that are to be tried first.
    left: Floats
    #: They have waited for too long.
    overdue: Bools
    #: They have, and it is their turn.
    turn: Bools


class Ranking:
    """The order of a state's jobs at one moment."""

    def __init__(self, state: "State", now_us: int, policy: Policy) -> None:
        self._state, self._now_us, self._policy = state, now_us, policy
        self.excess: Shares = shares(state, now_us, policy)
        #: The larger excess of each lane's user and project.
        self.worst: Floats = self.excess.worst
        self._fair = policy.order is Order.FAIR
        self._factor = _factor(self.excess) if self._fair else self.worst
        self._highest = max((t.column(Column.PRIORITY).max() for t in (state.queue, state.held) if len(t)), default=0)
        self._last = self._last_in_turn() if self._fair and now_us % PERIOD_US < TURN_US else None

    def of(self, table: Table) -> Ranks:
        """The ranks in one of the state's tables."""
        left = self._left(table)
        if not self._fair:
            score = _SCORES[self._policy.order](self._state, table, left, self._now_us)
            level = -table.column(Column.PRIORITY)
            nobody = np.zeros(len(table), dtype=bool)
            return Ranks(key=level + _squeezed(score), level=level, score=score, left=left, overdue=nobody, turn=nobody)
        age = np.maximum(self._now_us - table.column(Column.BORN), 0)
        score = left / np.sqrt(1 + age / _DAY) * self._factor[table.lane]
        waited = self._waited(table)
        level = -np.minimum(self._lifted(table, waited), max(self._highest, 0))
        key = level + np.where(score > 0, _OTHERS + (1 - _OTHERS) * _squeezed(score), 0)
        overdue = waited >= self._policy.longest_wait * _SECOND
        turn = self._in_turn(table, overdue)
        if turn.any():
            level[turn] = -self._highest
            key[turn] = -self._highest + _OVERDUE * (1 + _squeezed(table.column(Column.BORN)[turn]))
        return Ranks(key=key, level=level, score=score, left=left, overdue=overdue, turn=turn)

    def _waited(self, table: Table) -> Floats:
        waited = table.column(Column.WAITED)
        return waited if table is self._state.held else np.maximum(self._now_us - waited, 0)

    def _lifted(self, table: Table, waited: Floats) -> Floats:
        return table.column(Column.PRIORITY) + np.floor(waited / (self._policy.class_age * _SECOND))

    def _left(self, table: Table) -> Floats:
        known, ran = table.column(Column.LEFT), table.column(Column.RAN)
        if table is self._state.held:
            known = np.maximum(known - np.maximum(self._now_us - table.column(Column.AS_OF), 0), 1)
            ran = ran + self._now_us
        unknown = np.isnan(known)
        if not unknown.any():
            return known
        guess = table.column(Column.GUESS)
        trial = (self._policy.time_slice or 0) * _SECOND
        told = np.where(np.isnan(guess), np.maximum(ran, _UNKNOWN_US), guess)
        return np.where(unknown, np.where(ran < trial, 0, told), known)

    def _last_in_turn(self) -> tuple[float, float] | None:
        """When the last of the overdue that have their turn came, and its number; None if nobody is overdue."""
        born, number, gpus = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
        for table in (self._state.queue, self._state.held):
            rows = self._waited(table) >= self._policy.longest_wait * _SECOND
            born.append(table.column(Column.BORN)[rows])
            number.append(table.column(Column.NUMBER)[rows])
            gpus.append(self._state.lanes.gpus[table.lane[rows]])
        when, who, wanted = np.concatenate(born), np.concatenate(number), np.concatenate(gpus)
        if not len(when):
            return None
        first = np.lexsort((who, when))
        half = sum(len(box.slots) for box in self._state.boxes.values()) / 2
        last = first[max(np.searchsorted(np.cumsum(wanted[first]), half, side="right") - 1, 0)]
        return float(when[last]), float(who[last])

    def _in_turn(self, table: Table, overdue: Bools) -> Bools:
        if self._last is None:
            return np.zeros(len(table), dtype=bool)
        born, number = self._last
        when = table.column(Column.BORN)
        found: Bools = overdue & ((when < born) | ((when == born) & (table.column(Column.NUMBER) <= number)))
        return found


def order(state: "State", now_us: int, policy: Policy) -> list[str]:
    """All waiting jobs in the order in which a decision looks at them; those that something hinders are last."""
    ranking = Ranking(state, now_us, policy)
    found: list[str] = []
    for table in (state.queue, state.aside):
        rows = np.lexsort((table.column(Column.NUMBER), ranking.of(table).key))
        found += [table.jobs[row] for row in rows.tolist()]
    return found


def _squeezed(score: Floats) -> Floats:
    """From 0 to 1, in the same order."""
    return score / (score + _DAY)


def _factor(excess: Shares) -> Floats:
    """By how much each lane's jobs count longer because of what their user and project have had."""
    found: Floats = (np.maximum(excess.users, 0.05) * np.maximum(excess.projects, 0.05)) ** 0.3
    return found


def _number(state: "State", table: Table, left: Floats, now_us: int) -> Floats:
    del state, left, now_us
    return table.column(Column.NUMBER) * 1.0


def _time_left(state: "State", table: Table, left: Floats, now_us: int) -> Floats:
    del state, table, now_us
    return left


def _attained(state: "State", table: Table, left: Floats, now_us: int) -> Floats:
    del left
    ran = table.column(Column.RAN) + (now_us if table is state.held else 0)
    second = ran * state.lanes.gpus[table.lane] >= LAS_THRESHOLD_US
    return table.column(Column.NUMBER) + np.where(second, LAS_BEHIND, 0.0)


_SCORES: dict[Order, Callable[["State", Table, Floats, int], Floats]] = {
    Order.FIFO: _number,
    Order.SJF: _time_left,
    Order.SRTF: _time_left,
    Order.LAS: _attained,
}
