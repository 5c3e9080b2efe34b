"""Small models of the structure of large ones, for tests and machines without GPUs."""

from collections import OrderedDict

from torch import Tensor, nn
from torch.nn import functional

from torchyard.recipe.models import TinySegmenter, TinyVgg
from trainer.data import Shape


def tiny_vgg(options: TinyVgg, shape: Shape) -> nn.Module:
    """VGG's layers and names, with few channels; takes (N, channels, height, width)."""
    features: list[nn.Module] = []
    inputs = shape.sample[0]
    for width in options.widths:
        features += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)]
        features += [nn.ReLU(), nn.MaxPool2d(2)]
        inputs = width
    classifier: list[nn.Module] = []
    inputs *= 4
    for _ in range(2):
        classifier += [nn.Linear(inputs, options.hidden), nn.ReLU(), nn.Dropout(options.dropout)]
        inputs = options.hidden
    return nn.Sequential(
        OrderedDict(
            features=nn.Sequential(*features),
            avgpool=nn.AdaptiveAvgPool2d((2, 2)),
            flatten=nn.Flatten(),
            classifier=nn.Sequential(*classifier, nn.Linear(inputs, shape.classes)),
        )
    )


class Segmenter(nn.Module):
    """A fully convolutional network at half resolution; answers ``{"out": (N, classes, height, width)}``."""

    def __init__(self, channels: int, width: int, classes: int) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, stride=2),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
        self.classifier = nn.Conv2d(width, classes, 3, padding=1)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        scores = self.classifier(self.backbone(images))
        return {"out": functional.interpolate(scores, size=images.shape[-2:], mode="bilinear", align_corners=False)}


def tiny_segmenter(options: TinySegmenter, shape: Shape) -> nn.Module:
    """A `Segmenter` for the data's channels and classes."""
    return Segmenter(shape.sample[0], options.width, shape.classes)
