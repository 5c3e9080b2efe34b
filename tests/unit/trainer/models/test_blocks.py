import torch
import torchvision
from torch import nn

from trainer.models.blocks import blocks


def names(model: nn.Module) -> list[str]:
    return [name for name, _ in blocks(model)]


def test_layers_of_chains_and_whole_blocks() -> None:
    with torch.device("meta"):
        model = torchvision.models.resnet18()
    inner = [f"layer{stage}.{number}" for stage in (1, 2, 3, 4) for number in (0, 1)]
    assert names(model) == ["conv1", "bn1", *inner, "fc"]
    assert names(nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Sequential(nn.Linear(1, 1)))) == ["0", "2.0"]


def test_shared_parameters_stay_with_the_model() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].weight = model[2].weight
    assert names(model) == ["1"]


def test_a_parameter_that_the_model_uses_too_stays_with_it() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model.register_parameter("again", model[0].weight)
    assert names(model) == ["1"]
