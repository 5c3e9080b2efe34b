from pathlib import Path

import pytest
import torch
from torch import nn

from torchyard.recipe import Recipe
from torchyard.recipe.strategies import ModelParallel
from trainer.data import Shape
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.models import MODELS
from trainer.strategies.model_parallel import ModelParallelStrategy, SplitModel
from trainer.strategies.placement import StageModule, operations_of, parameter_bytes, place

CPU = torch.device("cpu")


def world(size: int, devices: int) -> World:
    return World(rank=0, local_rank=0, size=size, devices=(CPU,) * devices)


def test_processes_must_make_whole_sets_of_replicas() -> None:
    with pytest.raises(RecipeError, match="start one for each replica"):
        ModelParallelStrategy(ModelParallel(data_parallel=2), world(3, 2))


def test_one_device_is_not_enough() -> None:
    with pytest.raises(RecipeError, match="needs two devices"):
        ModelParallelStrategy(ModelParallel(), world(1, 1))


def model(name: str, size: int, device: str, classes: int = 10) -> nn.Module:
    recipe = Recipe.model_validate({"model": name, "data": {"name": "synthetic", "shape": [3, size, size]}})
    with torch.device(device):
        return MODELS[name](recipe.model, Shape(sample=(3, size, size), classes=classes))


@pytest.mark.parametrize(
    ("name", "first", "megabytes"), [("vgg16", "classifier.3", [470, 67]), ("alexnet", "classifier.4", [161, 67])]
)
def test_large_models_are_split_before_their_second_linear_layer(name: str, first: str, megabytes: list[int]) -> None:
    """Their first one has most of the parameters."""
    whole = model(name, 224, "meta")
    stages = [StageModule(layers) for layers in place(whole, 2, what="devices")]
    sizes = [parameter_bytes(stage) for stage in stages]
    assert sum(sizes) == parameter_bytes(whole)
    assert [round(size / 1e6) for size in sizes] == megabytes
    assert stages[1].names[0] == first
    assert stages[0].state_dict().keys() | stages[1].state_dict().keys() == whole.state_dict().keys()


@pytest.mark.parametrize(
    ("name", "classes", "balance", "bytes_share", "time_share"),
    [
        ("alexnet", 10, "bytes", 70.5, 97.6),
        ("alexnet", 1000, "bytes", 65.8, 97.1),
        ("alexnet", 1000, "time", 1.6, 56.9),
        ("vgg16", 1000, "bytes", 84.9, 99.9),
        ("vgg16", 1000, "time", 0.8, 48.4),
    ],
)
def test_bytes_and_time_are_shared_out_as_documented(
    name: str, classes: int, balance: str, bytes_share: float, time_share: float
) -> None:
    """Per cent of the first of two places."""
    whole, sample = model(name, 224, "meta", classes), (3, 224, 224)
    stages = place(whole, 2, what="devices", balance=balance, sample=sample)
    sizes = [sum(parameter_bytes(layer) for _, layer in layers) for layers in stages]
    first, second = operations_of(stages, sample)
    assert first is not None
    assert second is not None
    assert round(100 * sizes[0] / sum(sizes), 1) == bytes_share
    assert round(100 * first / (first + second), 1) == time_share
    page = (Path(__file__).parents[4] / "docs" / "techniques.md").read_text()
    assert f"{bytes_share} %" in page
    assert f"{time_share} %" in page


def test_a_balance_by_time_needs_operations_that_can_be_counted() -> None:
    words = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2))
    with pytest.raises(RecipeError, match=r"strategy.balance time: .*take balance: bytes"):
        place(words, 2, what="devices", balance="time", sample=(3,))
    assert operations_of(place(words, 2, what="devices"), (3,)) == [None, None]


def test_each_part_lies_and_computes_on_its_device() -> None:
    """Tensors of the second device have no values, and so nothing that is computed there comes back."""
    first, second = nn.Linear(3, 4), nn.Linear(4, 2)
    split = SplitModel([StageModule([("0", first)]), StageModule([("1", second)])], (CPU, torch.device("meta")))
    assert [each.weight.device.type for each in (first, second)] == ["cpu", "meta"]
    seen: list[str] = []
    for layer in (first, second):
        layer.register_forward_hook(lambda _, given, answer: seen.extend([given[0].device.type, answer.device.type]))
    with pytest.raises(NotImplementedError, match="out of meta tensor"):
        split(torch.ones(1, 3))
    assert seen == ["cpu", "cpu", "meta", "meta"]
    assert split.moved == 4 * 4


def test_alexnet_over_two_places_answers_what_it_answers_whole() -> None:
    whole = model("alexnet", 64, "cpu").eval()
    split = SplitModel([StageModule(layers) for layers in place(whole, 2, what="devices")], (CPU, CPU))
    samples = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(split(samples), whole(samples))
    assert split.moved > 0
