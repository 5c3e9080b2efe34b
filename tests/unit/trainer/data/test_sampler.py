from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.sampler import BatchShares, EvaluationSampler, TrainSampler
from trainer.exceptions import RecipeError


def samplers(samples: int, batch_size: int, shares: int, accumulate: int = 1) -> list[TrainSampler]:
    """One for each share, `batch_size` samples of it in a pass."""
    return [
        TrainSampler(
            samples=samples,
            size=batch_size * shares,
            shares=BatchShares(index=index, count=shares),
            accumulate=accumulate,
            seed=3,
        )
        for index in range(shares)
    ]


def train(ranks: list[TrainSampler], steps: int | None = None) -> list[int]:
    """Runs so many steps (or the rest of the epoch) as the loop does; answers the samples taken."""
    taken: list[int] = []
    passes = iter(list(zip(list(ranks[0].plan()), *ranks, strict=True)))
    for _ in range(ranks[0].steps_left() if steps is None else steps):
        size, micro = 0, None
        while micro is None or not micro.last:
            micro, *shares = next(passes)
            assert sum(map(len, shares)) == micro.size
            assert max(map(len, shares)) - min(map(len, shares)) <= 1
            size += micro.size
            taken += [index for share in shares for index in share]
        assert size == micro.step_size
        for rank in ranks:
            rank.advance(size)
    return taken


@given(
    samples=st.integers(1, 200),
    batch_size=st.integers(1, 17),
    world=st.integers(1, 5),
    accumulate=st.integers(1, 4),
)
def test_an_epoch_takes_every_sample_once_but_fewer_than_ranks(
    samples: int, batch_size: int, world: int, accumulate: int
) -> None:
    if samples < world:
        with pytest.raises(RecipeError):
            samplers(samples, batch_size, world)
        return
    ranks = samplers(samples, batch_size, world, accumulate)
    assert ranks[0].effective_batch == batch_size * world * accumulate
    assert ranks[0].steps_left() == ranks[0].steps_in_epoch()
    assert len(ranks[0]) == len(list(ranks[0]))
    taken = train(ranks)
    assert max(Counter(taken).values()) == 1
    assert samples - len(taken) < world
    assert len(ranks[0]) == ranks[0].steps_left() == 0
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
    steps = data.draw(st.integers(0, first[0].steps_left()))
    taken = train(first, steps)
    second = samplers(samples, batch_size, after)
    for rank in second:
        rank.set_epoch(0, first[0].consumed)
    taken += train(second)
    assert max(Counter(taken).values()) == 1
    assert samples - len(taken) < max(before, after)


def test_an_epoch_of_other_samples_begins_anew() -> None:
    (fewer,) = samplers(90, 7, 1)
    fewer.load_state_dict({"epoch": 2, "consumed": 95, "samples": 100, "seed": 3})
    assert (fewer.epoch, fewer.consumed, fewer.begun_anew) == (2, 0, True)
    fewer.load_state_dict({"epoch": 2, "consumed": 0, "samples": 90, "seed": 4})
    assert not fewer.begun_anew
    fewer.load_state_dict({"epoch": 2, "consumed": 35, "samples": 90, "seed": 4})
    assert fewer.begun_anew


def test_a_resumed_rank_sees_the_same_batches() -> None:
    (whole,) = samplers(100, 7, 1)
    (resumed,) = samplers(100, 7, 1)
    whole.set_epoch(2)
    resumed.load_state_dict({"epoch": 2, "consumed": 35})
    assert list(resumed) == list(whole)[5:]
    assert resumed.state_dict() == {"epoch": 2, "consumed": 35, "samples": 100, "seed": 3}


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
    sampler.advance(10)
    assert sampler.progress == 0.1


@given(samples=st.integers(1, 200), batch_size=st.integers(1, 17), world=st.integers(1, 5), equal=st.booleans())
def test_evaluation_counts_every_sample_once(samples: int, batch_size: int, world: int, equal: bool) -> None:
    ranks = [
        EvaluationSampler(
            samples=samples, batch_size=batch_size, shares=BatchShares(index=index, count=world), equal=equal
        )
        for index in range(world)
    ]
    batches = [list(zip(rank, rank.counts(), strict=True)) for rank in ranks]
    taken = [index for rank in batches for batch, count in rank for index in batch[:count]]
    assert sorted(taken) == list(range(samples))
    lengths = [len(rank) for rank in ranks]
    assert lengths == [len(rank) for rank in batches]
    assert min(lengths) == max(lengths) if equal else ranks[0].common == min(lengths)


def test_a_batch_smaller_than_the_shares_is_refused() -> None:
    with pytest.raises(RecipeError, match="smaller than the 4 shares"):
        TrainSampler(samples=10, size=3, shares=BatchShares(count=4), seed=0)


@given(samples=st.integers(1, 100), size=st.integers(2, 17), shares=st.integers(1, 2), accumulate=st.integers(1, 3))
def test_the_last_pass_may_be_dropped(samples: int, size: int, shares: int, accumulate: int) -> None:
    given_ = {"samples": samples, "size": size, "accumulate": accumulate, "drop_last": True, "seed": 0}
    if samples < size:
        with pytest.raises(RecipeError, match="drop_last leaves none"):
            TrainSampler(shares=BatchShares(count=shares), **given_)  # type: ignore[arg-type]
        return
    sampler = TrainSampler(shares=BatchShares(count=shares), **given_)  # type: ignore[arg-type]
    assert {micro.size for micro in sampler.plan()} == {size}
    assert len(sampler) == samples // size
