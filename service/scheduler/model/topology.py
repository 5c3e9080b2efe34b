"""Choice of the GPUs of a node that lie closest together."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb

from service.scheduler.model.nodes import Slot

#: So many sets are looked at one by one; among more, sets grown from each slot.
EXHAUSTIVE = 2000


def closest(slots: Sequence[Slot], count: int) -> list[Slot]:
    """Return `count` of the slots that lie closest together.

    Those whose worst link is the best, then those whose indexes lie closest together, then the first. Beyond
    `EXHAUSTIVE` possible sets the answer is a good one rather than the best.
    """
    in_order = sorted(slots, key=lambda slot: slot.index)
    if count in {0, 1, len(in_order)}:
        return in_order[:count]
    if not any(slot.links or slot.numa is not None for slot in in_order):
        window = min(_windows(in_order, count), key=_span)
        return list(window)
    sets: Iterable[Sequence[Slot]] = combinations(in_order, count)
    if comb(len(in_order), count) > EXHAUSTIVE:
        sets = _grown(in_order, count)
    best = min(sets, key=_distance)
    return list(best)


def worst(slots: Sequence[Slot]) -> int:
    """Return the slowest link between any two of the slots; -1 for a single one."""
    return max((a.link_type(b) for a, b in combinations(slots, 2)), default=-1)


def _distance(slots: Sequence[Slot]) -> tuple[int, int, int]:
    return worst(slots), *_span(slots)


def _span(slots: Sequence[Slot]) -> tuple[int, int]:
    return (slots[-1].index - slots[0].index, slots[0].index)


def _windows(slots: Sequence[Slot], count: int) -> list[Sequence[Slot]]:
    return [slots[start : start + count] for start in range(len(slots) - count + 1)]


def _grown(slots: Sequence[Slot], count: int) -> Iterable[Sequence[Slot]]:
    for seed in slots:
        chosen, left = [seed], [slot for slot in slots if slot is not seed]
        while len(chosen) < count:
            nearest = min(
                left,
                key=lambda slot: (max(slot.link_type(one) for one in chosen), abs(slot.index - seed.index)),
            )
            chosen.append(nearest)
            left.remove(nearest)
        yield sorted(chosen, key=lambda slot: slot.index)
