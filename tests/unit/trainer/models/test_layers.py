import pytest
import torch
import torchvision
from torch import nn

from trainer.exceptions import RecipeError
from trainer.models.layers import as_layers

NESTED = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(12, 5), nn.Sequential(nn.ReLU(), nn.Linear(5, 3))))


def narrow(model: nn.Module) -> nn.Module:
    """AlexNet and VGG without most of their classifier's 500 MB."""
    wide = next(layer for layer in model.classifier if isinstance(layer, nn.Linear))  # type: ignore[union-attr]
    model.classifier = nn.Sequential(nn.Linear(wide.in_features, 8), nn.ReLU(inplace=True), nn.Linear(8, 3))
    return model


def on_meta(make: object, **options: object) -> nn.Module:
    with torch.device("meta"):
        return narrow(make(**options)).to_empty(device="cpu")  # type: ignore[operator]


@pytest.mark.parametrize(
    ("model", "sample"),
    [
        (NESTED, (12,)),
        (on_meta(torchvision.models.alexnet), (3, 64, 64)),
        (on_meta(torchvision.models.vgg11), (3, 32, 32)),
        (torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=3), (3, 32, 32)),
    ],
    ids=["sequential", "alexnet", "vgg", "resnet"],
)
def test_layers_in_turn_are_the_model(model: nn.Module, sample: tuple[int, ...]) -> None:
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.05)
    model.eval()
    layers = as_layers(model)
    names = [f"{prefix}.{name}" for prefix, layer in layers for name in layer.state_dict()]
    assert names == list(model.state_dict())

    inputs = torch.randn(2, *sample)
    outputs = inputs
    for _, layer in layers:
        outputs = layer(outputs)
    assert torch.equal(outputs, model(inputs))
    assert outputs.shape == (2, 3)
    assert {id(each) for _, layer in layers for each in layer.parameters()} == {id(each) for each in model.parameters()}


class Branching(torchvision.models.ResNet):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + 1


def test_other_models_are_refused_with_the_mend() -> None:
    branching = Branching(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1])
    for model in (nn.Linear(1, 1), branching):
        with pytest.raises(RecipeError, match=r"cannot be cut into layers: take model mlp.* nn\.Sequential"):
            as_layers(model)


def test_a_layer_used_twice_is_refused() -> None:
    shared = nn.Linear(3, 3)
    with pytest.raises(RecipeError, match="the model holds one layer twice"):
        as_layers(nn.Sequential(shared, nn.ReLU(), shared))
