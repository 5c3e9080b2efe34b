"""A model as a sequence of layers, for strategies that place them on several devices."""

from typing import Any

from torch import nn

from trainer.exceptions import RecipeError

#: What torchvision's image models do in their forward, as names of their children; ``flatten`` has none.
_ORDERS = {
    "AlexNet": ("features", "avgpool", "flatten", "classifier"),
    "VGG": ("features", "avgpool", "flatten", "classifier"),
    "ResNet": ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4", "avgpool", "flatten", "fc"),
}


def as_layers(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the layers with the prefixes of their names in the state dict: applied in turn, they are the model.

    They are the model's own modules, so that training them trains it. Sources of the orders: the forward methods of
    torchvision.models.alexnet, vgg and resnet. Raises RecipeError for models whose forward is not a sequence.
    """
    if type(model) is nn.Sequential:
        return _flat("", model)
    order = _order(model)
    if order is None:
        raise RecipeError(
            f"{type(model).__name__} cannot be cut into layers: take model mlp, mnist_cnn, alexnet, vgg16, resnet or "
            "tiny_vgg, or a model of your own that is an nn.Sequential"
        )
    layers: list[tuple[str, nn.Module]] = []
    for name in order:
        child = getattr(model, name, None)
        layers += [(name, nn.Flatten())] if child is None else _flat(name, child)
    return layers


def _order(model: Any) -> tuple[str, ...] | None:
    # A subclass may have another forward.
    kind = type(model)
    return _ORDERS.get(kind.__name__) if kind.__module__.startswith("torchvision.models.") else None


def _flat(prefix: str, module: nn.Module) -> list[tuple[str, nn.Module]]:
    if type(module) is not nn.Sequential:
        return [(prefix, module)]
    if len(list(module.named_children())) < len(module):
        raise RecipeError(
            f"{prefix or 'the model'} holds one layer twice, so it cannot be cut: make a second layer of it"
        )
    children = [(f"{prefix}.{name}" if prefix else name, child) for name, child in module.named_children()]
    return [layer for name, child in children for layer in _flat(name, child)]
