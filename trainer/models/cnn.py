"""Small convolutional networks."""

from torch import nn

from torchyard.recipe.models import DigitsCnn, MnistCnn
from trainer.data import Shape


def digits_cnn(options: DigitsCnn, shape: Shape) -> nn.Module:
    """Two 3 by 3 convolutions, a pooling by 2, two linear layers; takes (N, channels, height, width)."""
    convolutions, features = _convolutions(options.channels, shape)
    return nn.Sequential(
        *convolutions,
        nn.Flatten(),
        nn.Dropout(options.dropout),
        nn.Linear(features, 128),
        nn.ReLU(),
        nn.Dropout(options.dropout),
        nn.Linear(128, shape.classes),
    )


def mnist_cnn(options: MnistCnn, shape: Shape) -> nn.Module:
    """The tutorials' network for MNIST, where it has 64 and 128 channels and 14 * 14 * 128 features."""
    convolutions, features = _convolutions(options.channels, shape)
    return nn.Sequential(
        *convolutions,
        nn.Flatten(),
        nn.Linear(features, options.hidden),
        nn.ReLU(),
        nn.Dropout(options.dropout),
        nn.Linear(options.hidden, shape.classes),
    )


def _convolutions(narrow: int, shape: Shape) -> tuple[list[nn.Module], int]:
    """Two convolutions and a pooling, and how many features they leave."""
    depth, height, width = shape.sample
    wide = 2 * narrow
    layers = [
        nn.Conv2d(depth, narrow, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(narrow, wide, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ]
    return layers, wide * (height // 2) * (width // 2)
