"""Models by name. To add one: a function here, its options in `torchyard.recipe.models`, a line below."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from torch import nn

from torchyard.recipe import Recipe
from trainer.data import Shape
from trainer.exceptions import RecipeError
from trainer.models.cnn import digits_cnn, mnist_cnn
from trainer.models.custom import custom_model
from trainer.models.mlp import mlp
from trainer.models.tiny import tiny_segmenter, tiny_vgg
from trainer.models.vision import alexnet, deeplabv3_resnet101, resnet, vgg16

MODELS: dict[str, Callable[[Any, Shape], nn.Module]] = {
    "alexnet": alexnet,
    "custom": custom_model,
    "deeplabv3_resnet101": deeplabv3_resnet101,
    "digits_cnn": digits_cnn,
    "mlp": mlp,
    "mnist_cnn": mnist_cnn,
    "resnet": resnet,
    "tiny_segmenter": tiny_segmenter,
    "tiny_vgg": tiny_vgg,
    "vgg16": vgg16,
}


def check_model(recipe: Recipe, shape: Shape) -> None:
    """Raise RecipeError where the model does not take the data, now that these are known; the spec's own check may
    have known nothing of them.
    """
    found: Any = SimpleNamespace(
        name=recipe.data.name, segments=shape.kind == "segmentation", sample_shape=shape.sample
    )
    try:
        recipe.model.check(found)
    except ValueError as error:
        raise RecipeError(str(error)) from error
