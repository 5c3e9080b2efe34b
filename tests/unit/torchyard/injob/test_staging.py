import torch

from torchyard.injob import random_streams as chance
from torchyard.injob.staging import LARGE, Staging, taken


def test_buffers_are_used_again() -> None:
    staging = Staging()
    weights = torch.arange(6.0).reshape(2, 3)
    addresses = []
    for value in (1.0, 2.0):
        weights.fill_(value)
        staging.begin()
        first, tied, other = staging.copy(weights), staging.copy(weights), staging.copy(weights[0])
        staging.finish()
        assert tied is first
        addresses.append((first.data_ptr(), other.data_ptr()))
        weights.zero_()
        assert torch.equal(first, torch.full((2, 3), value))
        assert torch.equal(other, torch.full((3,), value))
    assert addresses[0] == addresses[1]

    staging.begin()
    assert staging.copy(torch.zeros(5, dtype=torch.int64)).dtype == torch.int64
    staging.finish()


def test_the_layout_is_kept() -> None:
    images = torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert Staging().copy(images).stride() == images.stride()


def test_large_tensors_are_copied_whole() -> None:
    staging = Staging()
    values = [torch.full((1 << 21,), float(number)) for number in range(4)]
    copies = [staging.copy(value) for value in values]
    staging.finish()
    assert sum(value.nbytes for value in values) > LARGE
    assert all(map(torch.equal, copies, values))


def test_a_view_is_taken_without_what_it_is_a_view_of() -> None:
    large = torch.zeros(1000)
    assert taken(large[:10]).untyped_storage().nbytes() == 40
    assert taken(large).data_ptr() == large.data_ptr()


def test_streams_derived_for_other_ranks_differ_and_are_repeatable() -> None:
    torch.manual_seed(1)
    states = [chance.capture()]
    torch.manual_seed(2)
    states.append(chance.capture())
    before = chance.capture()
    first, second, again = (chance.derived(states, rank, 3) for rank in (0, 1, 0))
    assert not chance.moved(before)
    drawn = []
    for state in (first, second, again):
        chance.restore(state)
        drawn.append(torch.rand(4).tolist())
    assert drawn[0] == drawn[2] != drawn[1]
    assert chance.same([first, again])
    assert not chance.same([first, second])
