from contextlib import nullcontext
from itertools import combinations, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from trainer.exceptions import RecipeError
from trainer.strategies.placement import StageModule, activations, balanced, parameter_bytes, place


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], int]:
    sizes = draw(st.lists(st.integers(0, 50), min_size=1, max_size=9))
    return sizes, draw(st.integers(1, len(sizes)))


def largest(sizes: list[int], ranges: list[range]) -> int:
    return max(sum(sizes[i] for i in each) for each in ranges)


@given(problems())
def test_parts_are_consecutive_and_none_is_empty(problem: tuple[list[int], int]) -> None:
    sizes, stages = problem
    ranges = balanced(sizes, stages)
    assert len(ranges) == stages
    assert all(ranges)
    assert [i for each in ranges for i in each] == list(range(len(sizes)))


@given(problems())
def test_no_other_way_has_a_smaller_largest_part(problem: tuple[list[int], int]) -> None:
    sizes, stages = problem
    ways = (
        [range(start, end) for start, end in pairwise((0, *cuts, len(sizes)))]
        for cuts in combinations(range(1, len(sizes)), stages - 1)
    )
    assert largest(sizes, balanced(sizes, stages)) == min(largest(sizes, way) for way in ways)


def test_a_part_without_parameters_is_avoided() -> None:
    assert balanced([90, 10, 0], 2) == [range(1), range(1, 3)]


def test_what_has_no_parameters_stays_with_the_layer_before() -> None:
    assert balanced([9, 0, 0, 9, 0], 2) == [range(3), range(3, 5)]


@pytest.mark.parametrize("stages", [0, 3])
def test_more_parts_than_sizes_are_refused(stages: int) -> None:
    with pytest.raises(ValueError, match="2 sizes"):
        balanced([1, 1], stages)


def network() -> nn.Sequential:
    features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
    return nn.Sequential(features, nn.Flatten(), nn.Linear(4 * 64, 16), nn.ReLU(), nn.Linear(16, 10))


def test_parts_keep_the_names_and_are_the_model() -> None:
    model = network().eval()
    stages = [StageModule(layers) for layers in place(model, 3, what="devices")]
    whole = {name: value for stage in stages for name, value in stage.state_dict().items()}
    assert whole.keys() == model.state_dict().keys()
    assert sum(map(parameter_bytes, stages)) == parameter_bytes(model)
    samples = torch.randn(2, 1, 8, 8)
    assert torch.equal(stages[2](stages[1](stages[0](samples))), model(samples))


def test_a_model_with_too_few_layers_is_refused() -> None:
    with pytest.raises(RecipeError, match="7 layers, too few for 8 stages"):
        place(network(), 8, what="stages")


@pytest.mark.parametrize(("autocast", "dtype"), [(False, torch.float32), (True, torch.bfloat16)])
def test_activations_have_the_shapes_and_types_of_the_real_ones(autocast: bool, dtype: torch.dtype) -> None:
    model = network()
    layers = place(model, 3, what="stages")
    context = torch.autocast("cpu", dtype=torch.bfloat16) if autocast else nullcontext()
    with context, torch.no_grad():
        values, real = torch.randn(5, 1, 8, 8), []
        for each in layers:
            values = StageModule(each)(values)
            real.append((values.shape, values.dtype))
    before = model[0][1].running_mean.clone()  # type: ignore[index, union-attr, operator]
    context = torch.autocast("cpu", dtype=torch.bfloat16) if autocast else nullcontext()
    found = activations(layers, (5, 1, 8, 8), torch.device("cpu"), context)
    assert [(each.shape, each.dtype) for each in found] == real
    assert {each.dtype for each in found} == {dtype}
    assert {each.device.type for each in found} == {"meta"}
    assert torch.equal(before, model[0][1].running_mean)  # type: ignore[index, union-attr, arg-type]


def test_a_parameter_of_two_stages_is_refused() -> None:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    model = nn.Sequential(first, nn.Tanh(), second, nn.Linear(4, 2))
    with pytest.raises(
        RecipeError, match=r"0.weight and 2.weight are one parameter, but would lie on different stages"
    ):
        place(model, 3, what="stages")
    assert len(place(nn.Sequential(first, second, nn.Linear(4, 64)), 2, what="stages")) == 2


class Named(nn.Module):
    def forward(self, values: Tensor) -> dict[str, Tensor]:
        return {"out": values}


@pytest.mark.parametrize(
    ("layers", "reason"),
    [
        ([nn.Embedding(4, 4), nn.Linear(4, 4)], r"layer 0 does not take what comes to it, float32 of shape \[2, 8\]: "),
        ([nn.Linear(8, 4), nn.Linear(5, 4)], r"layer 1 does not take what comes to it, float32 of shape \[2, 4\]: "),
        ([nn.Linear(8, 4), Named()], "layer 1 answers dict, where a pipeline passes one tensor on"),
    ],
)
def test_a_layer_that_a_pipeline_cannot_pass_is_named(layers: list[nn.Module], reason: str) -> None:
    stages = place(nn.Sequential(*layers), 2, what="stages")
    with pytest.raises(RecipeError, match=reason):
        activations(stages, (2, 8), torch.device("cpu"), nullcontext())
