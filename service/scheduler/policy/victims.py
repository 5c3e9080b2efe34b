"""How few have to be stopped, and where, for one job to start."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from service.scheduler.model.boxes import Place
from service.scheduler.model.decisions import Cause
from service.scheduler.model.jobs import Running
from service.scheduler.policy.placement import Ask, Space, enough


class Victim(NamedTuple):
    """A running job that may be stopped for a certain preemptor."""

    job: Running
    cause: Cause
    score: float
    #: Running time since its newest checkpoint.
    unsaved_us: int

    @property
    def turn(self) -> tuple[int, int]:
        """Who goes first; of equals, the last in the order."""
        if self.cause is Cause.TIME_SLICE:
            return 1, 0
        # Over their share alone, and not clearly behind: they would hardly wait for long, and stop others in turn.
        return 2 if self.cause is Cause.SHARE else 0, self.unsaved_us


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The victims, and where the preemptor starts once they are gone."""

    victims: tuple[Victim, ...]
    places: tuple[Place, ...]


def _cost(victims: Iterable[Victim]) -> tuple[float, float, int]:
    """The least is stopped: work that might be lost, then jobs that are nearly done. Of these both the number counts
    and the GPUs, on which each start costs time; their root came to fewer stops than the GPUs, and to less time lost
    than the number.
    """
    hurt, near, gpus = 0.0, 0.0, 0
    for victim in victims:
        held = victim.job.gpus
        gpus += held
        near += math.sqrt(held) / max(victim.score, 1.0)
        if victim.cause is not Cause.TIME_SLICE:
            hurt += victim.unsaved_us * held
    return hurt, near, gpus


def on_one_node(ask: Ask, by_node: dict[str, list[Victim]], space: Space) -> Plan | None:
    """On one node: the cheapest where the preemptor then really starts."""
    chosen = {
        node: victims
        for node, found in by_node.items()
        if node in space.rooms and (victims := _counted(ask, node, found, space)) is not None
    }
    for node in sorted(chosen, key=lambda node: (_cost(chosen[node]), node)):
        trial = _Trial(space, node)
        for victim in chosen[node]:
            trial.without(victim)
        place = trial.place(ask)
        if place is not None:
            return Plan(victims=tuple(chosen[node]), places=(place,))
        fewest = _fewest(ask, node, by_node[node], space)
        if fewest is not None:
            return _stopping(ask, node, fewest, space)
    return None


def _stopping(ask: Ask, node: str, victims: Sequence[Victim], space: Space) -> Plan | None:
    trial = _Trial(space, node)
    for victim in victims:
        trial.without(victim)
    place = trial.place(ask)
    return None if place is None else Plan(victims=tuple(victims), places=(place,))


def _counted(ask: Ask, node: str, victims: Sequence[Victim], space: Space) -> list[Victim] | None:
    """The first victims that suffice by the number of their GPUs, without those that are not needed; None if all
    together do not. Whether the preemptor then starts is another question.
    """
    shape, room = ask.shape, space.rooms[node]
    if shape.gpu_share or not shape.gpus:
        return list(victims)
    lacking = shape.gpus - len(room.free)
    chosen: list[Victim] = []
    for victim in victims:
        if lacking <= 0:
            break
        if not victim.job.shape.gpu_share:
            chosen.append(victim)
            lacking -= victim.job.shape.gpus
    if lacking > 0:
        # How many of those that share have to go cannot be counted.
        return chosen if any(victim.job.shape.gpu_share for victim in victims) else None
    for victim in chosen[:] if lacking else ():
        if lacking + victim.job.shape.gpus <= 0:
            chosen.remove(victim)
            lacking += victim.job.shape.gpus
    return chosen


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
        self._space = Space(rooms={node: space.rooms[node]}, mask=space.mask, holds=space.holds)

    def fits(self, ask: Ask) -> bool:
        return self.place(ask) is not None

    def place(self, ask: Ask) -> Place | None:
        return self._space.place(ask, self._node)

    def without(self, victim: Victim) -> None:
        self._space.release(victim.job.job, victim.job.shape, self._here(victim))

    def with_again(self, victim: Victim) -> None:
        self._space.take(victim.job.job, victim.job.shape, self._here(victim))

    def _here(self, victim: Victim) -> list[Place]:
        return [place for place in victim.job.places if place.node == self._node]


def _enough_held(ask: Ask, node: str, victims: Iterable[Victim], space: Space) -> bool:
    """Whether what is free on the node and what they hold there could be enough: a sieve that costs little."""
    if ask.shape.gpu_share:
        return True
    slots = len(space.rooms[node].free)
    for victim in victims:
        slots += victim.job.shape.gpus
    return slots >= ask.shape.gpus


def _freed(space: Space, victims: Iterable[Victim]) -> Space:
    freed = space.copy()
    for victim in victims:
        freed.release(victim.job.job, victim.job.shape, victim.job.places)
    return freed


def on_several(ask: Ask, by_node: dict[str, list[Victim]], space: Space) -> Plan | None:
    """Nodes enough at once, the cheapest first; what stops for one of them frees its other nodes too."""
    costs: dict[str, tuple[float, ...]] = {}
    needed: dict[str, list[Victim]] = {}
    feasible = [node for node in sorted(space.rooms) if _enough_held(ask, node, by_node.get(node, ()), space)]
    if len(feasible) < ask.nodes:
        return None
    for node in feasible:
        chosen = _fewest(ask, node, by_node.get(node, ()), space)
        if chosen is not None:
            needed[node] = chosen
            costs[node] = _cost(chosen)
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
    return min(plans, key=lambda plan: _cost(plan.victims), default=None)
