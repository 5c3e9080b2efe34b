"""Data sets of the built-in trainer."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator

from torchyard.recipe.base import Count, Decay, RecipeOptions, Target, named
from torchyard.translatable import TranslatableText

Samples = Annotated[int, Field(ge=1, le=10_000_000)]
#: One number for each channel, or one for all of them.
Channels = Annotated[tuple[float, ...], Field(min_length=1, max_length=16)]
Spread = Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1, max_length=16)]
Share = Annotated[float, Field(gt=0, le=1)]


class DataOptions(RecipeOptions):
    """Base of all data sets."""

    segments: ClassVar[bool | None] = False
    """One class for each pixel, instead of one for each sample; None where only the job knows."""

    @property
    def sample_shape(self) -> tuple[int, ...] | None:
        """Shape of one sample, as far as it is known before the data are there."""
        return None


class Digits(DataOptions):
    """scikit-learn's handwritten digits: 1,797 real images of 8 by 8 pixels, ten classes; no download."""

    name: Literal["digits"] = "digits"
    """The data set."""
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Share of the images kept for validation."""
    split_seed: int = 0
    """Which images those are; apart from the run's seed, so that seeds compare on the same images."""

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return 1, 8, 8


class Synthetic(DataOptions):
    """Noisy images around one random prototype for each class, made on the spot."""

    name: Literal["synthetic"] = "synthetic"
    """The data set."""
    samples: Samples = 1024
    """Training samples."""
    validation_samples: Samples = 256
    """Validation samples."""
    shape: Annotated[tuple[Count, ...], Field(min_length=1, max_length=4)] = (1, 8, 8)
    """Shape of one sample; an image is channels, height, width."""
    classes: Annotated[int, Field(ge=2)] = 10
    """Number of classes."""
    noise: Decay = 1.0
    """Standard deviation of the noise; the prototypes have 1."""

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return self.shape


class SyntheticSegmentation(DataOptions):
    """Coloured rectangles and discs on noise with the class of each pixel, made on the spot; borders count nowhere."""

    name: Literal["synthetic_segmentation"] = "synthetic_segmentation"
    """The data set."""
    segments: ClassVar[bool | None] = True
    samples: Samples = 256
    """Training images."""
    validation_samples: Samples = 64
    """Validation images."""
    size: Annotated[int, Field(ge=8, le=4096)] = 32
    """Height and width."""
    classes: Annotated[int, Field(ge=2, le=255)] = 4
    """The first is the background."""
    noise: Decay = 0.5
    """Standard deviation of the noise; the colours have 1."""

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return 3, self.size, self.size


class Images(DataOptions):
    """Base of sets of real images. Chance is drawn for each sample and epoch, so that a resumed run sees the same."""

    channels: ClassVar[int] = 3
    own_size: ClassVar[int] = 0
    """Height and width of the stored images, where all are alike."""
    root: str | None = None
    """Folder that holds them; without it `TORCHYARD_DATA`, else ~/.cache/torchyard/data."""
    download: bool = True
    """Brought once to each file system; otherwise what lies in `root` is used as it is."""
    size: Count | None = None
    """Height and width that images are brought to; without it, their own."""
    mean: Channels = (0.5,)
    """Subtracted from values between 0 and 1, for each channel or for all."""
    std: Spread = (0.5,)
    """Then divided by."""
    crop: bool = False
    """Training images are random parts, brought to `size`."""
    crop_scale: tuple[Share, Share] = (0.08, 1.0)
    """Least and largest share of the image's area that a crop takes."""
    flip: bool = False
    """Training images are mirrored at random."""

    @property
    def side(self) -> int:
        """Height and width of a sample."""
        return self.size or self.own_size

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return self.channels, self.side, self.side

    @model_validator(mode="after")
    def _channels(self) -> Self:
        for field in ("mean", "std"):
            count = len(getattr(self, field))
            if count not in {1, self.channels}:
                raise ValueError(
                    TranslatableText(
                        "spread-channels",
                        "{field} has {count} values, but the images {channels} channel(s): give as many",
                        field=field,
                        count=count,
                        channels=self.channels,
                    )
                )
        if self.crop_scale[0] > self.crop_scale[1]:
            raise ValueError(
                TranslatableText("crop-scale", "crop_scale: the least share must not be above the largest")
            )
        return self


class Mnist(Images):
    """MNIST: 70,000 handwritten digits of 28 by 28 pixels; 12 MB to download."""

    name: Literal["mnist"] = "mnist"
    """The data set."""
    channels: ClassVar[int] = 1
    own_size: ClassVar[int] = 28
    mean: Channels = (0.1307,)
    """Subtracted from values between 0 and 1, for each channel or for all."""
    std: Spread = (0.3081,)
    """Then divided by."""


class Cifar10(Images):
    """CIFAR-10: 60,000 photographs of 32 by 32 pixels, ten classes; 170 MB to download."""

    name: Literal["cifar10"] = "cifar10"
    """The data set."""
    own_size: ClassVar[int] = 32
    mean: Channels = (0.4914, 0.4822, 0.4465)
    """Subtracted from values between 0 and 1, for each channel or for all."""
    std: Spread = (0.2470, 0.2435, 0.2616)
    """Then divided by."""


class Cifar100(Images):
    """CIFAR-100: 60,000 photographs of 32 by 32 pixels, a hundred classes; 170 MB to download."""

    name: Literal["cifar100"] = "cifar100"
    """The data set."""
    own_size: ClassVar[int] = 32
    mean: Channels = (0.5071, 0.4865, 0.4409)
    """Subtracted from values between 0 and 1, for each channel or for all."""
    std: Spread = (0.2673, 0.2564, 0.2762)
    """Then divided by."""


class Stl10(Images):
    """STL-10: 13,000 labelled photographs of 96 by 96 pixels, ten classes; 2.6 GB to download."""

    name: Literal["stl10"] = "stl10"
    """The data set."""
    own_size: ClassVar[int] = 96


class ImageFolder(Images):
    """Images in ImageNet's layout: `root`/train/<class>/*.jpg and `root`/val/<class>/*.jpg; never downloaded."""

    name: Literal["image_folder"] = "image_folder"
    """The data set."""
    root: str
    """The folder with train and val."""
    download: Literal[False] = False
    """ImageNet asks for a licence: put it there by hand."""
    size: Count = 224
    """Height and width; for validation the middle of an image whose short side is 8/7 of it."""
    mean: Channels = (0.485, 0.456, 0.406)
    """Subtracted from values between 0 and 1, for each channel or for all."""
    std: Spread = (0.229, 0.224, 0.225)
    """Then divided by."""


class Voc(Images):
    """PASCAL VOC 2012 segmentation: 2,913 photographs with the class of each pixel, 21 classes; 2 GB to download."""

    name: Literal["voc"] = "voc"
    """The data set."""
    segments: ClassVar[bool | None] = True
    size: Count = 513
    """Height and width; larger images shrink to it, smaller ones are filled up with pixels that count nowhere."""
    mean: Channels = (0.485, 0.456, 0.406)
    """Subtracted from values between 0 and 1, for each channel or for all."""
    std: Spread = (0.229, 0.224, 0.225)
    """Then divided by."""
    crop_scale: tuple[Share, Share] = (0.25, 1.0)
    """Least and largest share of the image's area that a crop takes."""


class CustomData(DataOptions):
    """A function of the job's own code that answers `trainer.data.DataSets`."""

    name: Literal["custom"] = "custom"
    """The data set."""
    segments: ClassVar[bool | None] = None
    target: Target
    """Called with the options; imported in the job, with its code folder on the path."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """Keyword arguments of the call."""


DataNoun = Annotated[
    Digits | Synthetic | SyntheticSegmentation | Mnist | Cifar10 | Cifar100 | Stl10 | ImageFolder | Voc | CustomData,
    Field(discriminator="name"),
    named(Digits, Synthetic, SyntheticSegmentation, Mnist, Cifar10, Cifar100, Stl10, ImageFolder, Voc, CustomData),
]
