import pytest
import torch
from torch import nn

from torchyard.recipe import Recipe
from torchyard.recipe.strategies import ModelParallel
from trainer.data import Shape
from trainer.distributed import World
from trainer.exceptions import RecipeError
from trainer.models import MODELS
from trainer.strategies.model_parallel import ModelParallelStrategy, Split
from trainer.strategies.placement import Part, parameter_bytes, place

CPU = torch.device("cpu")


def world(size: int, devices: int) -> World:
    return World(rank=0, local_rank=0, size=size, devices=(CPU,) * devices)


def test_processes_must_make_whole_sets_of_replicas() -> None:
    with pytest.raises(RecipeError, match="start one for each replica"):
        ModelParallelStrategy(ModelParallel(data_parallel=2), world(3, 2))


def test_one_device_is_not_enough() -> None:
    with pytest.raises(RecipeError, match="needs two devices"):
        ModelParallelStrategy(ModelParallel(), world(1, 1))


def model(name: str, size: int, device: str) -> nn.Module:
    recipe = Recipe.model_validate({"model": name, "data": {"name": "synthetic", "shape": [3, size, size]}})
    with torch.device(device):
        return MODELS[name](recipe.model, Shape(sample=(3, size, size), classes=10))


@pytest.mark.parametrize(
    ("name", "first", "megabytes"), [("vgg16", "classifier.3", [470, 67]), ("alexnet", "classifier.4", [161, 67])]
)
def test_large_models_are_split_before_their_second_linear_layer(name: str, first: str, megabytes: list[int]) -> None:
    """Their first one has most of the parameters."""
    whole = model(name, 224, "meta")
    parts = [Part(layers) for layers in place(whole, 2, what="devices")]
    sizes = [parameter_bytes(part) for part in parts]
    assert sum(sizes) == parameter_bytes(whole)
    assert [round(size / 1e6) for size in sizes] == megabytes
    assert parts[1].names[0] == first
    assert parts[0].state_dict().keys() | parts[1].state_dict().keys() == whole.state_dict().keys()


def test_alexnet_over_two_places_answers_what_it_answers_whole() -> None:
    whole = model("alexnet", 64, "cpu").eval()
    split = Split([Part(layers) for layers in place(whole, 2, what="devices")], (CPU, CPU))
    samples = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(split(samples), whole(samples))
    assert split.moved > 0
