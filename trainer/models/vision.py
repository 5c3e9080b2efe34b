"""torchvision's own models, with its weights.

Source: https://docs.pytorch.org/vision/stable/models.html. Image models take (N, 3, height, width) and answer
(N, classes); the segmenter answers a mapping with ``out`` (N, classes, height, width).
"""

import re
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import Tensor, nn

from torchyard.recipe.models import AlexNet, DeepLabV3Resnet101, Resnet, Vgg16
from trainer.data import Shape, downloads
from trainer.data.downloads import DownloadSource

_RESNETS = {18: "resnet18", 34: "resnet34", 50: "resnet50", 101: "resnet101"}


def alexnet(options: AlexNet, shape: Shape) -> nn.Module:
    """AlexNet, the one-tower form: https://arxiv.org/abs/1404.5997."""
    return _image_model("alexnet", options, shape, dropout=options.dropout)


def vgg16(options: Vgg16, shape: Shape) -> nn.Module:
    """VGG16 without batch normalisation: https://arxiv.org/abs/1409.1556."""
    return _image_model("vgg16", options, shape, dropout=options.dropout)


def resnet(options: Resnet, shape: Shape) -> nn.Module:
    """ResNet: https://arxiv.org/abs/1512.03385."""
    return _image_model(_RESNETS[options.depth], options, shape)


def deeplabv3_resnet101(options: DeepLabV3Resnet101, shape: Shape) -> nn.Module:
    """DeepLabV3: https://arxiv.org/abs/1706.05587. A training batch of one image fails in its batch normalisation."""
    from torchvision.models.segmentation import deeplabv3_resnet101 as make

    model: nn.Module = make(
        weights=None, weights_backbone=None, num_classes=shape.classes, aux_loss=options.aux_loss or None
    )
    if options.weights == "imagenet":
        _fill(model.get_submodule("backbone"), _imagenet("resnet101"))
    return model


def _image_model(name: str, options: Any, shape: Shape, **given: Any) -> nn.Module:
    from torchvision import models

    model: nn.Module = models.get_model(name, weights=None, num_classes=shape.classes, **given)
    if options.weights == "imagenet":
        _fill(model, _imagenet(name))
    return model


def _imagenet(name: str) -> dict[str, Tensor]:
    """Return the weights that torchvision had first; brought once to each file system, all ranks call it."""
    from torchvision import models

    source = weights_source(models.get_model_weights(name)["IMAGENET1K_V1"].url)
    root = downloads.default_root()
    return downloads.obtain(
        (source,), root, lambda: torch.load(root / source.file, map_location="cpu", weights_only=True)
    )


def weights_source(url: str) -> DownloadSource:
    """A file of weights: its name holds the beginning of its SHA-256, as `torch.hub` has it."""
    file = PurePosixPath(urlsplit(url).path).name
    digest = re.search(r"-([0-9a-f]{8,})\.", file)
    assert digest is not None, url
    return DownloadSource(urls=(url,), file=f"weights/{file}", checksum=f"sha256:{digest[1]}")


def _fill(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Load what has the model's names and shapes: a last layer for other classes stays new."""
    own = model.state_dict()
    fitting = {name: value for name, value in weights.items() if name in own and own[name].shape == value.shape}
    model.load_state_dict(fitting, strict=False)
