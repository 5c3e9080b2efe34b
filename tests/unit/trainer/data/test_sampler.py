from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.sampler import EvaluationSampler, TrainSampler
from trainer.exceptions import RecipeError


def samplers(samples: int, batch_size: int, world: int) -> list[TrainSampler]:
    return [
        TrainSampler(samples=samples, batch_size=batch_size, rank=rank, world=world, seed=3) for rank in range(world)
    ]


def train(ranks: list[TrainSampler], steps: int | None = None) -> list[int]:
    """Runs so many steps (or the rest of the epoch) as the loop does; answers the samples taken."""
    taken = []
    iterators = [iter(rank) for rank in ranks]
    for _ in range(len(ranks[0]) if steps is None else steps):
        shares = [next(iterator) for iterator in iterators]
        assert sum(map(len, shares)) == ranks[0].step_size()
        taken += [index for share in shares for index in share]
        for rank in ranks:
            rank.advance()
    return taken


@given(samples=st.integers(1, 200), batch_size=st.integers(1, 17), world=st.integers(1, 5))
def test_an_epoch_takes_every_sample_once_but_fewer_than_ranks(samples: int, batch_size: int, world: int) -> None:
    if samples < world:
        with pytest.raises(RecipeError):
            samplers(samples, batch_size, world)
        return
    ranks = samplers(samples, batch_size, world)
    assert len(ranks[0]) == ranks[0].steps_in_epoch() == len(list(ranks[0]))
    taken = train(ranks)
    assert max(Counter(taken).values()) == 1
    assert samples - len(taken) < world
    assert len(ranks[0]) == ranks[0].step_size() == 0
    assert list(ranks[0]) == []


@given(
    samples=st.integers(10, 200),
    batch_size=st.integers(1, 9),
    before=st.integers(1, 4),
    after=st.integers(1, 4),
    data=st.data(),
)
def test_another_number_of_ranks_goes_on_without_loss_or_double(
    samples: int, batch_size: int, before: int, after: int, data: st.DataObject
) -> None:
    first = samplers(samples, batch_size, before)
    steps = data.draw(st.integers(0, len(first[0])))
    taken = train(first, steps)
    second = samplers(samples, batch_size, after)
    for rank in second:
        rank.set_epoch(0, first[0].consumed)
    taken += train(second)
    assert max(Counter(taken).values()) == 1
    assert samples - len(taken) < max(before, after)


def test_a_resumed_rank_sees_the_same_batches() -> None:
    (whole,) = samplers(100, 7, 1)
    (resumed,) = samplers(100, 7, 1)
    whole.set_epoch(2)
    resumed.set_epoch(2, consumed=35)
    assert list(resumed) == list(whole)[5:]


def test_every_epoch_has_its_own_order() -> None:
    (sampler,) = samplers(100, 100, 1)
    orders = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        orders += list(sampler)
    assert len({tuple(order) for order in orders}) == 3
    assert all(sorted(order) == list(range(100)) for order in orders)


def test_reading_ahead_does_not_advance() -> None:
    (sampler,) = samplers(100, 10, 1)
    list(sampler)
    assert sampler.consumed == 0
    assert sampler.progress == 0
    sampler.advance()
    assert sampler.progress == 0.1


@given(samples=st.integers(1, 200), batch_size=st.integers(1, 17), world=st.integers(1, 5))
def test_evaluation_takes_every_sample_once(samples: int, batch_size: int, world: int) -> None:
    ranks = [EvaluationSampler(samples=samples, batch_size=batch_size, rank=rank, world=world) for rank in range(world)]
    taken = [index for rank in ranks for batch in rank for index in batch]
    assert sorted(taken) == list(range(samples))
    assert [len(rank) for rank in ranks] == [len(list(rank)) for rank in ranks]
    assert ranks[0].common == min(len(rank) for rank in ranks)
