"""Models by name. To add one: a function here, its options in `torchyard.recipe.models`, a line below."""

from collections.abc import Callable
from typing import Any

from torch import nn

from trainer.data import Shape
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
