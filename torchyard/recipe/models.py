"""Models of the built-in trainer."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, JsonValue

from torchyard.recipe.base import Count, Fraction, RecipeOptions, Target, named
from torchyard.recipe.data import DataOptions
from torchyard.translatable import TranslatableText

Weights = Literal["none", "imagenet"]


class ModelOptions(RecipeOptions):
    """Base of all models."""

    segments: ClassVar[bool | None] = False
    """Answers one class for each pixel, instead of one for each sample; None where only the job knows."""
    colours: ClassVar[int | None] = None
    """Channels that an image must have."""
    layered: ClassVar[bool | None] = True
    """A sequence of layers, which can be cut; None where only the job knows."""

    @property
    def least_side(self) -> int:
        """Height and width that an image must have; 0 takes samples of any shape."""
        return 1

    def check(self, data: DataOptions) -> None:
        """Raise ValueError with the mend where the model cannot take these data."""
        if None not in {self.segments, data.segments} and self.segments != data.segments:
            raise ValueError(self._other_kind(data))
        if data.sample_shape is not None and self.least_side:
            self._check_image(data, data.sample_shape)

    def _other_kind(self, data: DataOptions) -> TranslatableText:
        if data.segments:
            return TranslatableText(
                "data-of-pixels",
                "model {model} answers one class for each sample, but data {data} has one for each pixel: "
                "take model: deeplabv3_resnet101 or tiny_segmenter",
                model=_name(self),
                data=_name(data),
            )
        return TranslatableText(
            "data-of-samples",
            "model {model} answers one class for each pixel, but data {data} has one for each sample: "
            "take model: resnet, or data: voc",
            model=_name(self),
            data=_name(data),
        )

    def _check_image(self, data: DataOptions, shape: tuple[int, ...]) -> None:
        least = self.least_side
        if len(shape) != 3 or min(shape[1:]) < least:
            raise ValueError(
                TranslatableText(
                    "image-size",
                    "model {model} needs images of at least {least} by {least}, but data.shape is {shape}: give "
                    "channels, height, width (or a larger data.size), or take model: mlp",
                    model=_name(self),
                    least=least,
                    shape=str(list(shape)),
                )
            )
        if self.colours not in {None, shape[0]}:
            raise ValueError(
                TranslatableText(
                    "image-channels",
                    "model {model} needs images of {colours} channels, but those of data {data} have {channels}: "
                    "take model: mnist_cnn or digits_cnn",
                    model=_name(self),
                    colours=self.colours,
                    data=_name(data),
                    channels=shape[0],
                )
            )


def _name(noun: Any) -> str:
    return str(noun.name)


class SmallCnn(ModelOptions):
    """Base of those with two convolutions and a pooling."""

    channels: Count = 32
    """Channels of the first convolution; the second has twice as many."""
    dropout: Fraction = 0.25
    """Probability with which an activation is dropped in training."""

    @property
    def least_side(self) -> int:
        return 2


class DigitsCnn(SmallCnn):
    """Two convolutions and two linear layers, for small images."""

    name: Literal["digits_cnn"] = "digits_cnn"
    """The model."""


class MnistCnn(SmallCnn):
    """Two convolutions of 64 and 128 channels, a pooling, and linear layers over 1,024 features with dropout."""

    name: Literal["mnist_cnn"] = "mnist_cnn"
    """The model."""
    channels: Count = 64
    """Channels of the first convolution; the second has twice as many."""
    hidden: Count = 1024
    """Width of the layer before the last."""
    dropout: Fraction = 0.5
    """Probability with which an activation is dropped in training."""


class Mlp(ModelOptions):
    """A multilayer perceptron; its input width comes from the data."""

    name: Literal["mlp"] = "mlp"
    """The model."""
    hidden: Annotated[tuple[Count, ...], Field(max_length=64)] = (256, 128)
    """Widths of the hidden layers."""
    dropout: Fraction = 0.0
    """Probability with which an activation is dropped in training."""

    @property
    def least_side(self) -> int:
        return 0


class AlexNet(ModelOptions):
    """AlexNet (Krizhevsky 2014, torchvision's): 61 million parameters for a thousand classes."""

    name: Literal["alexnet"] = "alexnet"
    """The model."""
    colours: ClassVar[int | None] = 3
    weights: Weights = "none"
    """Start from weights trained on ImageNet (245 MB to download); the last layer is new where classes differ."""
    dropout: Fraction = 0.5
    """Probability with which an activation is dropped in training."""

    @property
    def least_side(self) -> int:
        return 63


class Vgg16(ModelOptions):
    """VGG16 (Simonyan and Zisserman 2014, torchvision's): 138 million parameters for a thousand classes."""

    name: Literal["vgg16"] = "vgg16"
    """The model."""
    colours: ClassVar[int | None] = 3
    weights: Weights = "none"
    """Start from weights trained on ImageNet (530 MB to download); the last layer is new where classes differ."""
    dropout: Fraction = 0.5
    """Probability with which an activation is dropped in training."""

    @property
    def least_side(self) -> int:
        return 32


class Resnet(ModelOptions):
    """ResNet (He et al. 2015, torchvision's)."""

    name: Literal["resnet"] = "resnet"
    """The model."""
    colours: ClassVar[int | None] = 3
    depth: Literal[18, 34, 50, 101] = 50
    """Number of layers."""
    weights: Weights = "none"
    """Start from weights trained on ImageNet (45 to 170 MB to download); the last layer is new where classes differ."""


class DeepLabV3Resnet101(ModelOptions):
    """DeepLabV3 on a ResNet-101 (Chen et al. 2017, torchvision's): 61 million parameters. Batches need two images."""

    name: Literal["deeplabv3_resnet101"] = "deeplabv3_resnet101"
    """The model."""
    segments: ClassVar[bool | None] = True
    layered: ClassVar[bool | None] = False
    colours: ClassVar[int | None] = 3
    weights: Weights = "none"
    """Start from a ResNet-101 trained on ImageNet (170 MB to download)."""
    aux_loss: bool = False
    """A second output from inside the network is trained as well, with weight 0.5."""


class TinyVgg(ModelOptions):
    """VGG's structure, narrow: for tests and machines without GPUs."""

    name: Literal["tiny_vgg"] = "tiny_vgg"
    """The model."""
    widths: Annotated[tuple[Count, ...], Field(min_length=1, max_length=5)] = (8, 16)
    """Channels of each block of two convolutions and a pooling."""
    hidden: Count = 32
    """Width of the two linear layers before the last."""
    dropout: Fraction = 0.5
    """Probability with which an activation is dropped in training."""

    @property
    def least_side(self) -> int:
        return int(2 ** len(self.widths))


class TinySegmenter(ModelOptions):
    """Three convolutions that answer as DeepLab does: for tests and machines without GPUs."""

    name: Literal["tiny_segmenter"] = "tiny_segmenter"
    """The model."""
    segments: ClassVar[bool | None] = True
    layered: ClassVar[bool | None] = False
    width: Count = 16
    """Channels of the convolutions."""


class CustomModel(ModelOptions):
    """A function or class of the job's own code that answers an `nn.Module`."""

    name: Literal["custom"] = "custom"
    """The model."""
    segments: ClassVar[bool | None] = None
    layered: ClassVar[bool | None] = None
    target: Target
    """Called with the options; imported in the job, with its code folder on the path."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """Keyword arguments of the call."""

    @property
    def least_side(self) -> int:
        return 0


ModelNoun = Annotated[
    DigitsCnn | MnistCnn | Mlp | AlexNet | Vgg16 | Resnet | DeepLabV3Resnet101 | TinyVgg | TinySegmenter | CustomModel,
    Field(discriminator="name"),
    named(
        DigitsCnn,
        MnistCnn,
        Mlp,
        AlexNet,
        Vgg16,
        Resnet,
        DeepLabV3Resnet101,
        TinyVgg,
        TinySegmenter,
        CustomModel,
    ),
]
