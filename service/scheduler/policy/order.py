"""Order of the jobs: every job gets one number, and the smaller one goes first.

**Classes** come first. In the order `fair` waiting for `class_age` raises a job by one class, but only into classes
that have jobs: age must not put long jobs before short ones of their own class, which would be first come, first
served.

**Within a class** of the order `fair`:

1. Jobs without an estimate that have not run for a time slice, by the excess of their user and of their project
   (`shares`), then by number: where no job can be preempted, this alone divides the cluster. After the slice a job's
   own steps tell how long it will take. If they do not, earlier jobs like it do; and failing these, it is expected to
   run for as long again as it has run.
2. The others by `remaining / sqrt(1 + age in days)`, times the excess of their user and of their project, each to the
   power of 0.3. The root, because dividing by the age itself raises the mean completion time and does not improve the
   worst; the power, because it suffices to keep users with different demand even, and a larger one keeps short jobs
   waiting. Beyond the age of `OLD_DAYS` it is divided by `(age / OLD_DAYS)` to the power of `OLD_POWER` as well: where
   there is too much work for weeks, the longest jobs would else wait for all others, whenever these come. It has no
   effect on a cluster where no job gets that old.

**Overdue jobs have turns.** A job that has waited for `longest_wait` is overdue. For `TURN_US` of every `PERIOD_US` the
overdue jobs, the oldest first, come right behind those of 1. in the highest class, and no job preempts them: as many as
fit into half of the GPUs, and the oldest in any case. If they came first all the time, an overloaded cluster would
serve only them, and every short job would become one of them. (All found by simulation: `yard simulate`.)

**Untried jobs hold no nodes first.** They are tried before all others, but nodes are held for them by the length that
is expected of them: that of earlier jobs like them, or else `UNTRIED_US`. Emptying nodes of jobs that cannot be
stopped, in order to try a job for a minute, would cost hours. Where trials are on (`trials`), a job that can neither be
preempted nor started over is not tried first, but placed by the length that is expected of it.

**What cannot be stopped is patient.** Such a job is overdue only once it has waited `PATIENCE` times as long as it
will run, too, since it keeps its devices to the end; and for no overdue job are nodes kept that take longer to become
free than a part of the time for which it has waited (`1 / PATIENCE`), except in its turn.

The other orders neither raise classes nor have turns. `fifo`: by number. `sjf`, `srtf`: by remaining time, from an
oracle. `las`: those that have had less GPU time than `LAS_THRESHOLD_US` before the others, by number within both
(Tiresias, Gu et al. 2019).
"""

from typing import NamedTuple

import numpy as np

from service.scheduler.model.columns import Bools, Floats, Ints
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from service.scheduler.policy.shares import shares
from service.scheduler.policy.trials import tries
from torchyard.ids import JobId
from torchyard.spec.policy import Order, Policy

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
#: GPU time after which `las` puts a job into the second queue.
LAS_THRESHOLD_US = 3_600 * _SECOND
#: Beyond all numbers of jobs: what sets the two queues of `las` apart.
LAS_BEHIND = 1e12
#: The turns of overdue jobs: length of a turn, and of the period that has one.
TURN_US, PERIOD_US = 36 * 60 * _SECOND, 12 * 3_600 * _SECOND
#: The age at which age begins to count for more than its root, and the power with which it does.
OLD_DAYS, OLD_POWER = 30, 6
#: What an untried job without a history is expected to run for, where nodes are held for it. Half an hour and four
#: hours were measured to do the same.
UNTRIED_US = 3_600 * _SECOND
#: Jobs that cannot be stopped wait so many times as long as they run before they are overdue.
PATIENCE = 30
_NONE: Ints = np.zeros(0, dtype=np.intp)
#: Where in its class a job stands: the untried from 0, the overdue in their turn and the others from here, up to 1.
_OVERDUE, _OTHERS = 0.125, 0.25


class Ranking(NamedTuple):
    """Order of all waiting and running jobs at one moment; arrays by row of the state's table."""

    #: The smaller goes first; equals by number.
    key: Floats
    #: The class, the highest being the smallest.
    level: Floats
    #: What the order compares within a class: microseconds where it is about time.
    score: Floats
    #: Assumed remaining running time, in microseconds; 0 for jobs without an estimate that are to run for a time slice
    #: first, and infinite for those that take no time slices.
    left: Floats
    #: They have waited for `longest_wait`.
    overdue: Bools
    #: They are overdue and have their turn.
    turn: Bools
    #: At least one has its turn.
    turns: bool
    #: There are several classes.
    several_priorities: bool
    #: Of each equivalence class, not row: the larger excess of its user and its project. 0 if it does not matter.
    worst: Floats
    #: Score and key by which nodes are held for a job: an untried one's by the length that is expected of it.
    hold_score: Floats
    hold_key: Floats


def rank_jobs(state: SchedulerState, now_us: int, policy: Policy) -> Ranking:
    """Return the order of all jobs at this moment."""
    if policy.order is not Order.FAIR:
        return _plain(state, now_us, policy)
    columns, class_id = state.table.columns, state.table.class_id
    found = shares(state, now_us, policy)
    age, waited, ran, left = state.table.at(now_us)
    left = _left(columns, ran, left, policy)
    divisor, factor = _age_divisor(np.maximum(age / _DAY, 0)), found.factor[class_id]
    score = left / divisor * factor
    level, several_priorities = _levels(columns[Column.PRIORITY], waited, policy)
    stays = ~state.classes.preemptible[class_id]
    untried = score == 0
    if np.count_nonzero(untried):
        expected = np.where(columns[Column.MOST] < np.inf, columns[Column.LEAST], UNTRIED_US)
        hold_score = np.where(untried, expected * factor / divisor, score)
        hold_key = _key(level, hold_score)
        tried_first = untried & ~(stays & ~state.classes.restartable[class_id]) if tries(policy) else untried
        key = np.where(tried_first, level + _OVERDUE * factor / (factor + 1), hold_key)
    else:
        hold_score, key = score, (hold_key := _key(level, score))
    overdue = waited >= np.maximum(policy.longest_wait * _SECOND, PATIENCE * stays * left)
    rows = _in_turn(state, overdue, now_us)
    turn = np.zeros(len(overdue), dtype=bool)
    if len(rows):
        turn[rows] = True
        born = -columns[Column.AGE][rows]
        level[rows] = -columns[Column.PRIORITY].max()
        key[rows] = hold_key[rows] = level[rows] + _OVERDUE * (1 + born / (born + _DAY))
    left, turns = _infinite_if_pinned(left, state), len(rows) > 0
    return Ranking(key, level, score, left, overdue, turn, turns, several_priorities, found.worst, hold_score, hold_key)


def _key(level: Floats, score: Floats) -> Floats:
    """Return the keys of jobs by their scores: in each class behind the untried and the overdue in their turn."""
    return level + 1 - (1 - _OTHERS) * _DAY / (score + _DAY)


def order(state: SchedulerState, now_us: int, policy: Policy) -> list[JobId]:
    """Return all waiting jobs in the order in which a decision tries them; ineligible ones come last."""
    columns = state.table.columns
    if not state.waiting:
        return []
    key, number, ineligible = rank_jobs(state, now_us, policy).key, columns[Column.NUMBER], columns[Column.QUEUED] == 0
    rows = np.flatnonzero(columns[Column.WAITS])
    jobs = state.table.jobs
    return [jobs[row] for row in rows[np.lexsort((number[rows], key[rows], ineligible[rows]))].tolist()]


def _left(columns: Floats, ran: Floats, told: Floats, policy: Policy) -> Floats:
    """Return the remaining time of each job, in microseconds: as its own progress tells it, or else as assumed."""
    left: Floats = np.maximum(told, 1)
    unknown = np.isnan(left)
    if np.count_nonzero(unknown):
        default = np.minimum(np.maximum(ran, columns[Column.LEAST]), columns[Column.MOST])
        default *= ran >= (policy.time_slice or 0) * _SECOND
        np.copyto(left, default, where=unknown)
    return left


def _infinite_if_pinned(left: Floats, state: SchedulerState) -> Floats:
    """Return the remaining times with infinity for jobs that take no time slices."""
    return np.where(state.classes.pinned[state.table.class_id], np.inf, left) if state.classes.pinning else left


def _age_divisor(age: Floats) -> Floats:
    """Return the divisors by which the remaining times of jobs of these ages, in days, count shorter."""
    divisor: Floats = np.sqrt(1 + age)
    if np.maximum.reduce(age) > OLD_DAYS:
        divisor *= np.maximum(age / OLD_DAYS, 1) ** OLD_POWER
    return divisor


def _levels(priority: Floats, waited: Floats, policy: Policy) -> tuple[Floats, bool]:
    """Return the negated class of each job, raised by waiting up to the highest there is; and whether they differ."""
    highest = np.maximum.reduce(priority)
    if np.minimum.reduce(priority) == highest:
        return np.negative(priority), False
    lifts = np.maximum(np.floor(waited / (policy.class_age * _SECOND)), 0)
    return -np.minimum(priority + lifts, highest), True


def _in_turn(state: SchedulerState, overdue: Bools, now_us: int) -> Ints:
    """Return the rows of the overdue jobs whose turn it is: the oldest, up to half of the GPUs."""
    if now_us % PERIOD_US >= TURN_US:
        return _NONE
    columns = state.table.columns
    rows: Ints = (overdue & (columns[Column.QUEUED] + columns[Column.RUNS] > 0)).nonzero()[0]
    rows = rows[np.lexsort((columns[Column.NUMBER][rows], -columns[Column.AGE][rows]))]
    half = sum(len(info.slots) for info in state.nodes.values()) / 2
    within = int(np.searchsorted(np.cumsum(state.classes.gpus[state.table.class_id[rows]]), half, side="right"))
    return rows[: max(within, 1)]


def _plain(state: SchedulerState, now_us: int, policy: Policy) -> Ranking:
    """Return the ranking of the orders other than `fair`."""
    level = -state.table.columns[Column.PRIORITY]
    score, left = _plain_score(state, now_us, policy)
    nobody = np.zeros(len(level), dtype=bool)
    # Shares cost more than all else here, and only preemption uses them.
    several_priorities = bool(level.min() < level.max())
    matter = policy.preemption or (policy.time_slice is not None and several_priorities)
    worst = shares(state, now_us, policy).worst if matter else np.zeros(len(state.classes))
    key = level + score / (score + _DAY)
    left = _infinite_if_pinned(left, state)
    return Ranking(key, level, score, left, nobody, nobody, False, several_priorities, worst, score, key)


def _plain_score(state: SchedulerState, now_us: int, policy: Policy) -> tuple[Floats, Floats]:
    """Return the score of each job, and its remaining time where the order uses it, else 0."""
    columns = state.table.columns
    _, _, ran, left = state.table.at(now_us)
    if policy.order in {Order.SJF, Order.SRTF}:
        left = _left(columns, ran, left, policy)
        return left, left
    number, untold = columns[Column.NUMBER], np.zeros(columns.shape[1])
    if policy.order is Order.FIFO:
        return number, untold
    second = ran * state.classes.gpus[state.table.class_id] >= LAS_THRESHOLD_US
    return number + np.where(second, LAS_BEHIND, 0.0), untold
