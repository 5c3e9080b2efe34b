"""Sets of real images, read by torchvision. Each function brings them first, once for each file system."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from torchyard.recipe.data import Cifar10, Cifar100, ImageFolder, Images, Mnist, Stl10, Voc
from trainer.data import downloads
from trainer.data.augmented import AugmentedDataset, TransformedDataset
from trainer.data.downloads import DownloadSource
from trainer.data.sets import Batch, DataSets, Shape
from trainer.exceptions import DownloadError

#: From the root, and whether the training samples are meant, to torchvision's set.
Opened = Callable[[Path, bool], Any]


def mnist(options: Mnist) -> DataSets:
    """60,000 and 10,000 images (1, 28, 28) of digits (LeCun et al. 1998)."""
    from torchvision.datasets import MNIST

    sources = tuple(
        DownloadSource(
            urls=tuple(f"{mirror}{name}" for mirror in MNIST.mirrors),
            file=f"MNIST/raw/{name}",
            checksum=f"md5:{digest}",
            unpack=gunzip,
        )
        for name, digest in MNIST.resources
    )
    return _classified(options, sources, lambda root, train: MNIST(root, train=train), classes=10)


def cifar10(options: Cifar10) -> DataSets:
    """50,000 and 10,000 images (3, 32, 32) of ten classes (Krizhevsky 2009)."""
    from torchvision.datasets import CIFAR10

    return _classified(options, (_archive(CIFAR10),), lambda root, train: CIFAR10(root, train=train), classes=10)


def cifar100(options: Cifar100) -> DataSets:
    """50,000 and 10,000 images (3, 32, 32) of a hundred classes (Krizhevsky 2009)."""
    from torchvision.datasets import CIFAR100

    return _classified(options, (_archive(CIFAR100),), lambda root, train: CIFAR100(root, train=train), classes=100)


def stl10(options: Stl10) -> DataSets:
    """5,000 and 8,000 labelled images (3, 96, 96) of ten classes (Coates et al. 2011)."""
    from torchvision.datasets import STL10

    class Labelled(STL10):  # type: ignore[misc]
        def _check_integrity(self) -> bool:
            return True  # the archive's checksum was: torchvision reads 3 GB again, on each rank and start

    def opened(root: Path, train: bool) -> Any:
        return Labelled(root, split="train" if train else "test")

    return _classified(options, (_archive(STL10),), opened, classes=10)


def image_folder(options: ImageFolder) -> DataSets:
    """Images in ImageNet's layout: `root`/train/<class>/… and `root`/val/<class>/…; any sizes."""
    from torchvision.datasets import ImageFolder as Folder

    train, validation = _opened(options, (), lambda root, train: Folder(root / ("train" if train else "val")))
    if train.classes != validation.classes:
        different = ", ".join(sorted(set(train.classes) ^ set(validation.classes))[:5])
        raise DownloadError(f"{options.root}: train and val must hold the same classes, but not both have {different}")
    return _sets(options, train, validation, classes=len(train.classes))


def voc(options: Voc) -> DataSets:
    """1,464 and 1,449 photographs with a class for each pixel (Everingham et al. 2010)."""
    from torchvision.datasets import VOCSegmentation
    from torchvision.datasets.voc import DATASET_YEAR_DICT

    place = DATASET_YEAR_DICT["2012"]
    source = DownloadSource(
        urls=(place["url"],), file=place["filename"], checksum=f"md5:{place['md5']}", unpack=downloads.untar
    )
    train, validation = _opened(
        options, (source,), lambda root, train: VOCSegmentation(root, image_set="train" if train else "val")
    )
    return _sets(options, train, validation, classes=21)


class PixelDataset(Dataset[Batch]):
    """Images held in memory as bytes, normalised batch by batch."""

    def __init__(self, images: Tensor, targets: Tensor, options: Images) -> None:
        self._images = images
        self._targets = targets
        self._options = options

    def __len__(self) -> int:
        return len(self._targets)

    def __getitem__(self, index: int) -> Batch:
        images, targets = self.__getitems__([index])
        return images[0], targets[0]

    def __getitems__(self, indices: list[int]) -> Batch:
        from trainer.data.transforms import normalized

        chosen = torch.tensor(indices)
        return normalized(self._images[chosen], self._options), self._targets[chosen]


def gunzip(archive: Path) -> None:
    """Unpack a .gz file beside itself."""
    with gzip.open(archive) as packed, archive.with_suffix("").open("wb") as file:
        shutil.copyfileobj(packed, file)


def _archive(dataset: Any) -> DownloadSource:
    """Address and checksum of a set's archive, as torchvision gives them."""
    return DownloadSource(
        urls=(dataset.url,), file=dataset.filename, checksum=f"md5:{dataset.tgz_md5}", unpack=downloads.untar
    )


def _classified(options: Images, sources: tuple[DownloadSource, ...], opened: Opened, *, classes: int) -> DataSets:
    """Sets whose images are all in memory: quicker, if nothing but their values changes."""
    from trainer.data.transforms import pixels

    both = _opened(options, sources, opened)
    if not pixels(options):
        return _sets(options, *both, classes=classes)
    train, validation = (PixelDataset(*_held(each), options) for each in both)
    return DataSets(train=train, validation=validation, shape=Shape(sample=options.sample_shape, classes=classes))


def _held(dataset: Any) -> Batch:
    """Bytes (N, channels, height, width) and classes of one of torchvision's sets in memory."""
    images = torch.as_tensor(dataset.data)
    if images.dim() == 3:
        images = images.unsqueeze(1)
    elif images.shape[-1] == 3:
        images = images.permute(0, 3, 1, 2)
    targets = dataset.targets if hasattr(dataset, "targets") else dataset.labels
    return images.contiguous(), torch.as_tensor(targets).long()


def _opened(options: Images, sources: tuple[DownloadSource, ...], opened: Opened) -> tuple[Any, Any]:
    root = downloads.root_of(options.root)
    return downloads.obtain(sources, root, lambda: (opened(root, True), opened(root, False)), download=options.download)


def _sets(options: Images, train: Any, validation: Any, *, classes: int) -> DataSets:
    from trainer.data import transforms

    change = transforms.segmentation if options.segments else transforms.classification
    changes = options.crop or options.flip
    return DataSets(
        train=(AugmentedDataset if changes else TransformedDataset)(train, change(options, training=True)),
        validation=TransformedDataset(validation, change(options, training=False)),
        shape=Shape(
            sample=options.sample_shape,
            classes=classes,
            kind="segmentation" if options.segments else "classification",
        ),
    )
