from collections.abc import Callable

import pytest
import torch
import torchvision
from torch import nn

from trainer.exceptions import RecipeError
from trainer.numerics.activation_checkpointing import recompute


def chain() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        *(nn.Linear(48, 16), nn.ReLU(), nn.Dropout(0.5)),
        *(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3)),
        nn.Linear(16, 3),
    )


def blocks() -> nn.Module:
    return torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=3)


class Count:
    """Elements that autograd keeps for backward."""

    def __init__(self) -> None:
        self.kept = 0

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        self.kept += tensor.numel()
        return tensor


def trained(make: Callable[[], nn.Module], size: int, *, again: bool) -> tuple[dict[str, torch.Tensor], int]:
    torch.manual_seed(0)
    model, samples = make(), torch.randn(4, 3, size, size)
    if again:
        recompute([model])
    optimizer, count = torch.optim.SGD(model.parameters(), lr=0.01), Count()
    for _ in range(2):
        with torch.autograd.graph.saved_tensors_hooks(count.pack, lambda tensor: tensor):
            loss = model(samples).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.state_dict(), count.kept


@pytest.mark.parametrize(("make", "size"), [(chain, 4), (blocks, 32)])
def test_the_same_bits_from_fewer_kept_activations(make: Callable[[], nn.Module], size: int) -> None:
    """Dropout falls alike, BatchNorm counts a batch once, names stay."""
    plain, kept = trained(make, size, again=False)
    again, kept_again = trained(make, size, again=True)
    assert list(plain) == list(again)
    assert all(torch.equal(value, again[name]) for name, value in plain.items())
    assert kept_again < kept


def test_an_evaluation_keeps_nothing_to_compute_again() -> None:
    model = chain()
    recompute([model])
    model.eval()
    with torch.no_grad():
        assert not model(torch.randn(2, 48)).requires_grad


def test_a_model_without_parts_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"no blocks and no chain of layers in Linear: .* nn\.Sequential"):
        recompute([nn.Linear(2, 1)])
