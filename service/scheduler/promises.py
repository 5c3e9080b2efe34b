"""Places for jobs that others were stopped for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from service.scheduler.placement import Ask, Space

if TYPE_CHECKING:
    from service.scheduler.state import State


def soon(state: "State", space: Space, newcomer: str) -> Space:
    """What will be free once those that give way to the job are gone."""
    found = space.copy()
    for name in state.yielding.get(newcomer, ()):
        victim = state.running[name]
        found.release(name, victim.shape, victim.places)
    return found


def sparing(state: "State", space: Space, asks: Sequence[Ask]) -> list[Ask]:
    """The same in their order; or if more of them find a place like that, those first that would lose the only one
    that suits them to one before: what was stopped for them was not stopped for nothing.
    """
    tried, moved = list(asks), set[str]()
    if len(tried) < 2:
        return tried
    lost = _losers(state, space, tried)
    best, fewest = tried, len(lost)
    while (ask := next((ask for ask in lost if ask.job not in moved), None)) is not None:
        moved.add(ask.job)
        tried = [ask, *(other for other in tried if other is not ask)]
        lost = _losers(state, space, tried)
        if len(lost) < fewest:
            best, fewest = tried, len(lost)
    return best


def _losers(state: "State", space: Space, asks: Sequence[Ask]) -> list[Ask]:
    left, lost = space.copy(), list[Ask]()
    for ask in asks:
        places = left.find(ask) or soon(state, left, ask.job).find(ask)
        if places:
            left.take(ask.job, ask.shape, places)
        else:
            lost.append(ask)
    return lost
