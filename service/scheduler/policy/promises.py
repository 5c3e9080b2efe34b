"""Places for jobs that others were stopped for."""

from collections.abc import Sequence

from service.scheduler.model.boxes import Place
from service.scheduler.model.state import State
from service.scheduler.policy.placement import Ask, Space


def soon(state: State, space: Space, preemptor: str) -> Space:
    """What will be free once those that give way to the job are gone."""
    found = space.copy()
    for name in state.yielding.get(preemptor, ()):
        victim = state.running[name]
        found.release(name, victim.shape, victim.places)
    return found


def sparing(state: State, space: Space, asks: Sequence[Ask]) -> list[tuple[Ask, tuple[Place, ...]]]:
    """The same in their order, each to be placed wherever there is room; or if more of them find a place like that,
    those first that would lose the only one that suits them to one before, and one of them at a certain place: what
    was stopped for them was not stopped for nothing.
    """
    order, lost = _in_best_order(state, space, asks)
    for ask in order if lost else ():
        others = [other for other in order if other is not ask]
        for places in space.all_places(ask):
            left = space.copy()
            left.take(ask.job, ask.shape, places)
            if len(_losers(state, left, others)) < len(lost):
                return [(ask, places), *((other, ()) for other in others)]
    return [(ask, ()) for ask in order]


def _in_best_order(state: State, space: Space, asks: Sequence[Ask]) -> tuple[list[Ask], list[Ask]]:
    """The order that loses the fewest of those that were tried, and whom."""
    tried, moved = list(asks), set[str]()
    lost = _losers(state, space, tried) if len(tried) > 1 else []
    best, fewest = tried, lost
    while (ask := next((ask for ask in lost if ask.job not in moved), None)) is not None:
        moved.add(ask.job)
        tried = [ask, *(other for other in tried if other is not ask)]
        lost = _losers(state, space, tried)
        if len(lost) < len(fewest):
            best, fewest = tried, lost
    return best, fewest


def _losers(state: State, space: Space, asks: Sequence[Ask]) -> list[Ask]:
    left, lost = space.copy(), list[Ask]()
    for ask in asks:
        places = left.find(ask) or soon(state, left, ask.job).find(ask)
        if places:
            left.take(ask.job, ask.shape, places)
        else:
            lost.append(ask)
    return lost
