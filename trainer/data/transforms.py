"""Transforms from stored images to what models take.

Source: https://docs.pytorch.org/vision/stable/transforms.html (v2, which change image and mask alike).
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

from torchyard.recipe.data import ImageFolder, Images
from trainer.data.augmented import Change
from trainer.data.sets import IGNORED


def classification(options: Images, *, training: bool) -> Change:
    """Transform of a PIL image and its class to a tensor (channels, size, size) and the class."""
    steps = [
        *(_chance(options) if training else []),
        *([] if training and options.crop else _fitting(options)),
        v2.ToImage(),
        *_values(options),
    ]
    return partial(_classified, v2.Compose(steps))


def segmentation(options: Images, *, training: bool) -> Change:
    """Transform of a PIL image and its mask to tensors (3, size, size) and (size, size); 255 counts nowhere."""
    chance = v2.Compose(_chance(options)) if training and (options.crop or options.flip) else v2.Identity()
    return partial(_segmented, chance, v2.Compose(_values(options)), options.side)


# Loader processes may have to pickle these: so they are functions of this module.


def _classified(steps: Any, image: Any, target: int) -> tuple[Tensor, int]:
    return steps(image).as_subclass(Tensor), target


def _segmented(chance: Any, values: Any, side: int, image: Any, mask: Any) -> tuple[Tensor, Tensor]:
    image, mask = chance(functional.to_image(image), tv_tensors.Mask(functional.pil_to_tensor(mask)))
    image, mask = values(*_shrunk(image, mask, side))
    padding = [0, 0, side - image.shape[-1], side - image.shape[-2]]
    image = functional.pad(image.as_subclass(Tensor), padding)
    mask = functional.pad(mask.as_subclass(Tensor), padding, fill=[IGNORED])
    return image, mask.squeeze(0).long()


def pixels(options: Images) -> bool:
    """True if images are used as they are stored, except for their values."""
    return not (options.size or options.crop or options.flip)


def normalized(images: Tensor, options: Images) -> Tensor:
    """Values 0 to 255, (N, channels, height, width), as the transforms would bring them."""
    mean, std = (torch.tensor(each).view(-1, 1, 1) for each in (options.mean, options.std))
    return (images.float() / 255 - mean) / std


def _chance(options: Images) -> list[Any]:
    crop = v2.RandomResizedCrop(options.side, scale=options.crop_scale, antialias=True)
    return [*([crop] if options.crop else []), *([v2.RandomHorizontalFlip()] if options.flip else [])]


def _fitting(options: Images) -> list[Any]:
    if isinstance(options, ImageFolder):
        return [v2.Resize(round(options.side * 8 / 7)), v2.CenterCrop(options.side)]
    return [v2.Resize([options.side, options.side])]


def _values(options: Images) -> list[Any]:
    channels = options.channels
    mean, std = ([*each] * (channels if len(each) == 1 else 1) for each in (options.mean, options.std))
    floats = v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True)
    return [floats, v2.Normalize(mean=mean, std=std)]


def _shrunk(image: Tensor, mask: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """Both with a longer side of at most `side`."""
    height, width = image.shape[-2:]
    longer = max(height, width)
    if longer <= side:
        return image, mask
    size = [max(1, round(each * side / longer)) for each in (height, width)]
    # A mask is resized to the nearest pixel's class.
    return functional.resize(image, size, antialias=True), functional.resize(mask, size)
