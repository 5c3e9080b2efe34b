"""The recipe: the built-in trainer's five nouns and the run's own keys, without torch.

The schema lives here so that the service can refuse a bad recipe before anything is launched; the trainer builds the
real objects from the same data. A noun is a bare name (``optim: adam``) or a name with options
(``optim: {name: adam, lr: 0.01}``).
"""

import difflib
from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

Fraction = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Decay = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class Options(BaseModel):
    """Base of every noun: immutable, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class DigitsCnn(Options):
    """Two convolutions and two linear layers, for small images."""

    name: Literal["digits_cnn"] = "digits_cnn"
    channels: Count = 32
    """Channels of the first convolution; the second has twice as many."""
    dropout: Fraction = 0.25


class Mlp(Options):
    """A multilayer perceptron; its input width comes from the data."""

    name: Literal["mlp"] = "mlp"
    hidden: Annotated[tuple[Count, ...], Field(max_length=64)] = (256, 128)
    """Widths of the hidden layers."""
    dropout: Fraction = 0.0


class Digits(Options):
    """scikit-learn's handwritten digits: 1,797 real images of 8 by 8 pixels, ten classes; no download."""

    name: Literal["digits"] = "digits"
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Share of the images kept for validation."""
    split_seed: int = 0
    """Which images those are; apart from the run's seed, so that seeds compare on the same images."""


class Synthetic(Options):
    """Noisy images around one random prototype for each class, made on the spot."""

    name: Literal["synthetic"] = "synthetic"
    samples: Annotated[int, Field(ge=1, le=10_000_000)] = 1024
    """Training samples."""
    validation_samples: Annotated[int, Field(ge=1, le=10_000_000)] = 256
    shape: Annotated[tuple[Count, ...], Field(min_length=1, max_length=4)] = (1, 8, 8)
    """Shape of one sample; an image is channels, height, width."""
    classes: Annotated[int, Field(ge=2)] = 10
    noise: Decay = 1.0
    """Standard deviation of the noise; the prototypes have 1."""


class Adam(Options):
    name: Literal["adam"] = "adam"
    lr: Rate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Rate = 1e-8
    weight_decay: Decay = 0.0


class AdamW(Options):
    name: Literal["adamw"] = "adamw"
    lr: Rate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Rate = 1e-8
    weight_decay: Decay = 0.01


class Sgd(Options):
    name: Literal["sgd"] = "sgd"
    lr: Rate = 0.01
    momentum: Fraction = 0.9
    weight_decay: Decay = 0.0
    nesterov: bool = False

    @model_validator(mode="after")
    def _nesterov(self) -> Self:
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum above 0")
        return self


class Constant(Options):
    """The learning rate stays."""

    name: Literal["constant"] = "constant"


class Step(Options):
    """The learning rate is multiplied by `gamma` every `size` epochs."""

    name: Literal["step"] = "step"
    size: Count
    """Epochs between two changes."""
    gamma: Rate = 0.1


class MultiStep(Options):
    """The learning rate is multiplied by `gamma` at each milestone."""

    name: Literal["multistep"] = "multistep"
    milestones: Annotated[tuple[Count, ...], Field(min_length=1)]
    """Epochs after which the rate changes, ascending."""
    gamma: Rate = 0.1

    @field_validator("milestones")
    @classmethod
    def _ascending(cls, milestones: tuple[int, ...]) -> tuple[int, ...]:
        if any(later <= earlier for earlier, later in pairwise(milestones)):
            raise ValueError("milestones must ascend")
        return milestones


class Cosine(Options):
    """The learning rate falls along half a cosine over the whole run, after a linear warm-up."""

    name: Literal["cosine"] = "cosine"
    warmup: Annotated[float, Field(ge=0)] = 0.0
    """Epochs of warm-up."""
    floor: Fraction = 0.0
    """Share of the learning rate that is left at the end."""


class Ddp(Options):
    """DistributedDataParallel: a replica on each rank, gradients averaged during backward."""

    name: Literal["ddp"] = "ddp"
    find_unused_parameters: bool = False
    static_graph: bool = False


class Single(Options):
    """One process, no communication."""

    name: Literal["single"] = "single"


def _named(*kinds: type[Options]) -> Callable[[Any], Any]:
    """Accepts a bare name, and explains a wrong one in one sentence."""
    names = [str(kind.model_fields["name"].default) for kind in kinds]

    def expand(value: Any) -> Any:
        if isinstance(value, Options):
            return value
        given = {"name": value} if isinstance(value, str) else value
        if not isinstance(given, dict):
            raise ValueError(f"give a name ({', '.join(names)}), or {{name: {names[0]}, option: value}}")
        if "name" not in given:
            raise ValueError(f"its name is missing: add name: {' or '.join(names)}")
        if given["name"] not in names:
            raise ValueError(_unknown(str(given["name"]), names))
        return given

    return expand


def _unknown(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"{name!r} is not known here: choose {', '.join(names[:-1])} or {names[-1]}.{hint}"


ModelNoun = Annotated[
    DigitsCnn | Mlp,
    Field(discriminator="name"),
    BeforeValidator(_named(DigitsCnn, Mlp), json_schema_input_type=Literal["digits_cnn", "mlp"] | DigitsCnn | Mlp),
]
DataNoun = Annotated[
    Digits | Synthetic,
    Field(discriminator="name"),
    BeforeValidator(
        _named(Digits, Synthetic), json_schema_input_type=Literal["digits", "synthetic"] | Digits | Synthetic
    ),
]
OptimNoun = Annotated[
    Adam | AdamW | Sgd,
    Field(discriminator="name"),
    BeforeValidator(
        _named(Adam, AdamW, Sgd), json_schema_input_type=Literal["adam", "adamw", "sgd"] | Adam | AdamW | Sgd
    ),
]
ScheduleNoun = Annotated[
    Constant | Step | MultiStep | Cosine,
    Field(discriminator="name"),
    BeforeValidator(
        _named(Constant, Step, MultiStep, Cosine),
        # The others have options that must be given.
        json_schema_input_type=Literal["constant", "cosine"] | Constant | Step | MultiStep | Cosine,
    ),
]
StrategyNoun = Annotated[
    Ddp | Single,
    Field(discriminator="name"),
    BeforeValidator(_named(Ddp, Single), json_schema_input_type=Literal["ddp", "single"] | Ddp | Single),
]


class Recipe(Options):
    """One training run of the built-in trainer."""

    model: ModelNoun = DigitsCnn()
    data: DataNoun = Digits()
    optim: OptimNoun = Adam()
    schedule: ScheduleNoun = Constant()
    strategy: StrategyNoun = Ddp()
    epochs: Count = 5
    """Passes over the training data."""
    batch_size: Count = 64
    """Samples per device and step; the effective batch is this times the number of ranks."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Fixes initial weights, the order of samples and all other chance."""
    num_workers: Annotated[int, Field(ge=0, le=256)] = 0
    """Processes per rank that load data; 0 loads in the rank itself."""
    log_every: Count = 10
    """Steps between two reports of the training loss."""
    evaluate_every: Count = 1
    """Epochs between two evaluations; the last epoch is always evaluated."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if isinstance(self.model, DigitsCnn) and isinstance(self.data, Synthetic):
            shape = self.data.shape
            if len(shape) != 3 or min(shape[1:]) < 2:
                raise ValueError(
                    f"model digits_cnn needs images of at least 2 by 2, but data.shape is {list(shape)}: "
                    "give channels, height, width, or take model: mlp"
                )
        if isinstance(self.schedule, Cosine) and self.schedule.warmup >= self.epochs:
            raise ValueError(f"schedule.warmup ({self.schedule.warmup:g} epochs) must be less than epochs")
        return self
