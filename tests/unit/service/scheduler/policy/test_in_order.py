import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.scheduler.model.columns import Bools, Ints
from service.scheduler.policy.in_order import in_order


def all_of(rows: Ints) -> Bools:
    return np.ones(len(rows), dtype=bool)


@given(st.lists(st.integers(0, 5), max_size=700), st.randoms(use_true_random=False))
def test_rows_come_by_key_and_then_by_number(keys: list[int], random: object) -> None:
    number = np.arange(len(keys), dtype=float)
    random.shuffle(number)  # type: ignore[attr-defined]
    key = np.array(keys, dtype=float)
    found = list(in_order(np.arange(len(keys)), key, number, all_of))
    assert found == sorted(range(len(keys)), key=lambda row: (key[row], number[row]))


def test_who_has_lost_hope_on_the_way_is_hardly_looked_at() -> None:
    hopeless_from, count = 100, 100_000
    looked: list[int] = []

    def feasible(rows: Ints) -> Bools:
        found: Bools = rows < (hopeless_from if len(looked) > hopeless_from else count)
        return found

    key = np.arange(count, dtype=float)
    for row in in_order(np.arange(count), key, key, feasible):
        looked.append(row)  # noqa: PERF402 - hoping reads it meanwhile
    assert looked == list(range(len(looked)))
    assert hopeless_from < len(looked) <= hopeless_from + 64
