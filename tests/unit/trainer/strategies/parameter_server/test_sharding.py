"""Parameters are spread evenly, and lie in messages without gaps."""

import pytest
import torch
from torch import nn

from trainer.exceptions import RecipeError
from trainer.strategies.parameter_server.sharding import FlatLayout, assign, shards


@pytest.mark.parametrize(
    ("sizes", "servers", "held"),
    [
        ([5, 4, 3, 2], 1, [[0, 1, 2, 3]]),
        ([5, 4, 3, 2], 2, [[0, 3], [1, 2]]),
        ([1, 1, 8], 2, [[2], [0, 1]]),
        ([2, 2, 2, 2], 3, [[0, 3], [1], [2]]),
        ([0, 0], 2, [[0], [1]]),
    ],
)
def test_the_largest_goes_first_to_whoever_has_least(sizes: list[int], servers: int, held: list[list[int]]) -> None:
    assert assign(sizes, servers) == held


def test_buffers_and_frozen_parameters() -> None:
    """Buffers are the first server's, as far as they are saved; what is not trained is nobody's."""
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model[0].bias.requires_grad_(False)
    model.register_buffer("scratch", torch.zeros(1), persistent=False)
    first, second = shards(model, 2)
    assert list(first.parameters) == ["0.weight"]
    assert list(second.parameters) == ["1.weight", "1.bias"]
    assert list(first.buffers) == ["1.running_mean", "1.running_var", "1.num_batches_tracked"]
    assert not second.buffers


def test_a_server_without_a_parameter_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"strategy.servers \(3\) is more than the model has parameters: take 2"):
        shards(nn.Linear(3, 2), 3)


def test_tensors_of_any_type_in_one_buffer() -> None:
    tensors = [torch.tensor([1.5]), torch.tensor(7), torch.ones(3, dtype=torch.float16), torch.zeros(0, 4)]
    layout = FlatLayout(tensors)
    assert layout.size == 4 + 4 + 8 + 6 + 2  # a gap before the number of eight bytes, and one at the end
    views = layout.views(layout.buffer(torch.device("cpu")))
    torch._foreach_copy_(views, tensors)
    for view, tensor in zip(views, tensors, strict=True):
        assert torch.equal(view, tensor)
    assert FlatLayout([torch.zeros(5, 3), torch.zeros(2)]).size == 4 * 17
