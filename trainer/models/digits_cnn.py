"""A small convolutional network."""

from torch import nn

from torchyard.recipe.models import DigitsCnn
from trainer.data import Shape


def digits_cnn(options: DigitsCnn, shape: Shape) -> nn.Module:
    """Two 3 by 3 convolutions, a pooling by 2, two linear layers; takes (N, channels, height, width)."""
    depth, height, width = shape.sample
    narrow, wide = options.channels, 2 * options.channels
    return nn.Sequential(
        nn.Conv2d(depth, narrow, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(narrow, wide, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(options.dropout),
        nn.Linear(wide * (height // 2) * (width // 2), 128),
        nn.ReLU(),
        nn.Dropout(options.dropout),
        nn.Linear(128, shape.classes),
    )
