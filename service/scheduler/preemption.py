"""Who is stopped for a job that finds no room.

Only running jobs that can be stopped, have run for `min_run`, and come *after* the newcomer in the order. One of these
must be true as well:

- the newcomer has waited for too long, and it is its turn (`order`);
- they are of a lower class (`preemption`);
- their user or project has had more than their share, and the newcomer's have not (`preemption`);
- `time_slice` is set and the newcomer is clearly ahead: nothing is known of it yet, or its score is `AHEAD` times
  better and what it gains is more than a preemption costs.

Nobody is stopped unless the newcomer then really starts there: its placement is tried on the freed nodes first. As
few as possible are stopped: jobs of lower classes or over their share by the least work since their last checkpoint,
those that make room for a shorter one from the end of the order.

It comes to rest: each preemption puts a job in the place of jobs that all come after it in one total order, which
stopping and starting do not change. With the jobs that run sorted by that order, each decision makes the list better
at the first place where it changes, and there are finitely many such lists.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.scheduler.boxes import Place
from service.scheduler.decisions import Cause
from service.scheduler.order import LAS_BEHIND, Ranking, Ranks
from service.scheduler.placement import Ask, Space, enough
from service.scheduler.table import Bools, Column, Floats
from torchyard.policy import Order, Policy

if TYPE_CHECKING:
    from service.scheduler.state import Running, State

#: A running job gives way to one whose score is so many times better.
AHEAD = 1.25
#: Parts of their share by which one must be over, and the other under it.
OVER, UNDER = 1.1, 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Newcomer:
    """A waiting job that wants places of others."""

    ask: Ask
    number: int
    key: float
    level: float
    score: float
    remaining_us: float
    #: The larger excess of its user and its project.
    excess: float
    #: It has waited for too long, and it is its turn.
    turn: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Victim:
    """A running job that may be stopped for a certain newcomer."""

    job: "Running"
    cause: Cause
    key: float
    score: float
    #: Running time since its newest checkpoint.
    unsaved_us: int

    @property
    def turn(self) -> tuple[bool, float, float, str]:
        """Who goes first."""
        slicing = self.cause is Cause.TIME_SLICE
        return slicing, 0 if slicing else self.unsaved_us, -self.key, self.job.job


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The victims, and where the newcomer starts once they are gone."""

    victims: tuple[Victim, ...]
    places: tuple[Place, ...]


class Victims:
    """The running jobs that can be stopped at all, as of one moment."""

    def __init__(self, state: "State", now_us: int, policy: Policy, ranking: Ranking) -> None:
        self._state, self._now_us, self._policy = state, now_us, policy
        held = state.held
        allowed = policy.preemption or policy.time_slice is not None
        spared = (held.column(Column.SPARED) > now_us) | (
            held.column(Column.SINCE) > now_us - policy.min_run * 1_000_000
        )
        self._open: Bools = ~spared if allowed else np.zeros(len(held), dtype=bool)
        if not self._open.any():
            return
        self._ranks: Ranks = ranking.of(held)
        self._excess = ranking.worst[held.lane]
        self._open &= ~self._ranks.turn

    def __bool__(self) -> bool:
        return bool(self._open.any())

    def might(self, waiting: Ranks, excess: Floats) -> Bools:
        """Which waiting jobs come before some victim that they may stop: a first sieve, which lets no such job fall."""
        rank, here = self._ranks, self._open
        levels, keys = rank.level[here], rank.key[here]
        lowest = levels.max()
        found = waiting.turn.copy()
        if self._policy.preemption:
            found |= waiting.level < lowest
            over = self._excess[here] > OVER
            if over.any():
                found |= (excess <= UNDER) & (waiting.key <= keys[over].max())
        if self._policy.time_slice is not None:
            worst = rank.score[here].max()
            found |= (waiting.level <= lowest) & (waiting.score < worst)
        return found

    def plan(self, newcomer: Newcomer, space: Space) -> Plan | None:
        """The cheapest preemption after which the newcomer starts; None if there is none."""
        victims = self._of(newcomer)
        if not victims:
            return None
        by_node: dict[str, list[Victim]] = {}
        for victim in victims:
            for place in victim.job.places:
                by_node.setdefault(place.node, []).append(victim)
        if newcomer.ask.nodes > 1:
            return _gang(newcomer.ask, by_node, space)
        plans = [
            plan
            for node, found in sorted(by_node.items())
            if (plan := _on_node(newcomer.ask, node, found, space)) is not None
        ]
        return min(plans, key=_cost, default=None)

    def stop(self, jobs: Iterable[str]) -> None:
        """They are chosen, and can't be chosen again."""
        for job in jobs:
            self._open[self._state.held.rows[job]] = False

    def _of(self, newcomer: Newcomer) -> list[Victim]:
        rank = self._ranks
        after = self._open & (rank.key >= newcomer.key)
        lower = rank.level > newcomer.level
        causes: list[tuple[Cause, Bools]] = [(Cause.LONGEST_WAIT, after)] if newcomer.turn else []
        if self._policy.preemption:
            causes.append((Cause.CLASS, after & lower))
            if newcomer.excess <= UNDER:
                causes.append((Cause.SHARE, after & (self._excess > OVER)))
        if self._policy.time_slice is not None:
            causes.append((Cause.TIME_SLICE, after & self._clearly_behind(newcomer)))
        found: dict[int, Cause] = {}
        for cause, rows in causes:
            for row in np.flatnonzero(rows).tolist():
                found.setdefault(row, cause)
        victims = [self._victim(row, cause) for row, cause in found.items()]
        behind = (newcomer.key, newcomer.number)
        return sorted((v for v in victims if (v.key, v.job.number) > behind), key=lambda victim: victim.turn)

    def _clearly_behind(self, newcomer: Newcomer) -> Bools:
        score = self._ranks.score
        if self._policy.order in {Order.FIFO, Order.SJF}:
            return np.zeros(len(score), dtype=bool)
        if self._policy.order is Order.LAS:
            return (score >= LAS_BEHIND) & (newcomer.score < LAS_BEHIND)
        gain = self._ranks.left > newcomer.remaining_us + self._policy.preemption_cost * 1e6
        ahead = AHEAD if self._policy.order is Order.FAIR else 1.0
        return gain & (score > ahead * newcomer.score)

    def _victim(self, row: int, cause: Cause) -> Victim:
        job = self._state.running[self._state.held.jobs[row]]
        saved_us = job.since_us if job.saved_us is None else max(job.saved_us, job.since_us)
        return Victim(
            job=job,
            cause=cause,
            key=float(self._ranks.key[row]),
            score=float(self._ranks.score[row]),
            unsaved_us=max(self._now_us - saved_us, 0),
        )


def _cost(plan: Plan) -> tuple[float, float, int]:
    """The least is stopped: work that might be lost, then GPUs of jobs that are nearly done."""
    hurt = sum(v.unsaved_us * v.job.gpus for v in plan.victims if v.cause is not Cause.TIME_SLICE)
    near = sum(v.job.gpus / max(v.score, 1.0) for v in plan.victims)
    return hurt, near, sum(victim.job.gpus for victim in plan.victims)


def _on_node(ask: Ask, node: str, victims: Sequence[Victim], space: Space) -> Plan | None:
    room = space.rooms.get(node)
    if room is None or not _could(ask, node, victims, len(room.free)):
        return None
    chosen = _fewest(ask, node, victims, space)
    if chosen is None:
        return None
    place = _freed(space, chosen).place(ask, node)
    return None if place is None else Plan(victims=tuple(chosen), places=(place,))


def _could(ask: Ask, node: str, victims: Iterable[Victim], free: int) -> bool:
    if ask.shape.gpu_share:
        return True
    there = sum(len(place.uuids) for v in victims for place in v.job.places if place.node == node)
    return free + there >= ask.shape.gpus


def _fewest(ask: Ask, node: str, victims: Iterable[Victim], space: Space) -> list[Victim] | None:
    """The first victims that suffice, without those that are not needed."""
    chosen: list[Victim] = []
    trial = _Trial(space, node)
    for victim in victims:
        if trial.fits(ask):
            break
        trial.without(victim)
        chosen.append(victim)
    if not trial.fits(ask):
        return None
    for victim in chosen[:]:
        trial.with_again(victim)
        if trial.fits(ask):
            chosen.remove(victim)
        else:
            trial.without(victim)
    return chosen


class _Trial:
    """One node of a space, on which victims are taken away and put back."""

    def __init__(self, space: Space, node: str) -> None:
        self._node = node
        self._space = Space(rooms={node: space.rooms[node]}, barred=space.barred, keeps=space.keeps)

    def fits(self, ask: Ask) -> bool:
        return self._space.place(ask, self._node) is not None

    def without(self, victim: Victim) -> None:
        self._space.release(victim.job.job, victim.job.shape, self._here(victim))

    def with_again(self, victim: Victim) -> None:
        self._space.take(victim.job.job, victim.job.shape, self._here(victim))

    def _here(self, victim: Victim) -> list[Place]:
        return [place for place in victim.job.places if place.node == self._node]


def _freed(space: Space, victims: Iterable[Victim]) -> Space:
    freed = space.copy()
    for victim in victims:
        freed.release(victim.job.job, victim.job.shape, victim.job.places)
    return freed


def _gang(ask: Ask, by_node: dict[str, list[Victim]], space: Space) -> Plan | None:
    """Nodes enough at once, the cheapest first; what stops for one of them frees its other nodes too."""
    costs: dict[str, tuple[float, ...]] = {}
    needed: dict[str, list[Victim]] = {}
    for node in sorted(space.rooms):
        chosen = _fewest(ask, node, by_node.get(node, []), space)
        if chosen is not None:
            needed[node] = chosen
            costs[node] = _cost(Plan(victims=tuple(chosen), places=()))
    plans = []
    for gpus in (True, False):
        nodes = [node for node in needed if (space.rooms[node].box.word == "GPUs") == gpus or not ask.shape.gpus]
        nodes = sorted(nodes, key=lambda node: (costs[node], node))[: ask.nodes]
        if not enough([space.rooms[node].box for node in nodes], ask.shape, ask.nodes):
            continue
        unique = {victim.job.job: victim for node in nodes for victim in needed[node]}
        freed = _freed(space, unique.values())
        places = [freed.place(ask, node) for node in nodes]
        whole = tuple(place for place in places if place is not None)
        if len(whole) == ask.nodes:
            plans.append(Plan(victims=tuple(unique.values()), places=whole))
    return min(plans, key=_cost, default=None)
