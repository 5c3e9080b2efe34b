"""Which GPUs lie closest together."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from service.scheduler.model.nodes import LinkType, Slot
from service.scheduler.model.topology import closest, worst
from tests.unit.service.scheduler.worlds import slot


def linked(count: int, pairs: dict[tuple[int, int], LinkType], default: LinkType = LinkType.SYS) -> list[Slot]:
    def link_type(a: int, b: int) -> LinkType:
        return pairs.get((min(a, b), max(a, b)), default)

    return [slot(a, links={f"a{b}": link_type(a, b) for b in range(count) if b != a}) for a in range(count)]


def indexes(slots: list[Slot]) -> list[int]:
    return [one.index for one in slots]


def test_neighbours_where_nothing_is_known() -> None:
    slots = [slot(i) for i in (7, 0, 3, 4, 6)]
    assert indexes(closest(slots, 2)) == [3, 4]
    assert indexes(closest(slots, 3)) == [3, 4, 6]
    assert closest(slots, 0) == []
    assert indexes(closest(slots, 5)) == [0, 3, 4, 6, 7]


def test_the_best_worst_link_before_neighbours() -> None:
    bridges = {(0, 3): LinkType.NVLINK, (1, 2): LinkType.PIX, (0, 1): LinkType.NODE}
    slots = linked(4, bridges)
    assert indexes(closest(slots, 2)) == [0, 3]
    assert indexes(closest([one for one in slots if one.index], 2)) == [1, 2]


def test_one_numa_node_where_links_are_not_known() -> None:
    slots = [slot(i, numa=i % 2) for i in range(6)]
    assert indexes(closest(slots, 3)) == [0, 2, 4]


def test_sixteen_gpus_in_islands_of_four() -> None:
    islands = {(a, b): LinkType.NVLINK for a, b in combinations(range(16), 2) if a % 4 == b % 4}
    assert indexes(closest(linked(16, islands, LinkType.NODE), 4)) == [0, 4, 8, 12]


@given(st.integers(2, 6), st.data())
def test_no_other_set_is_closer(count: int, data: st.DataObject) -> None:
    pairs = {pair: data.draw(st.sampled_from(LinkType)) for pair in combinations(range(count), 2)}
    slots = linked(count, pairs)
    wanted = data.draw(st.integers(1, count))
    chosen = closest(slots, wanted)
    assert len({one.uuid for one in chosen}) == wanted
    assert worst(chosen) == min(worst(other) for other in combinations(slots, wanted))
