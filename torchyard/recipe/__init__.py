"""The recipe: the built-in trainer's five nouns and the run's own keys, without torch.

The schema lives here so that the service can refuse a bad recipe before anything is launched; the trainer builds the
real objects from the same data. A noun is a bare name (``optim: adam``) or a name with options
(``optim: {name: adam, lr: 0.01}``).
"""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from torchyard.numbers import INT64
from torchyard.quantities import Duration
from torchyard.recipe.base import Count, Fraction, Rate, RecipeOptions
from torchyard.recipe.data import DataNoun, Digits
from torchyard.recipe.models import DigitsCnn, ModelNoun
from torchyard.recipe.optim import Adam, OptimNoun
from torchyard.recipe.schedule import Constant, ScheduleNoun
from torchyard.recipe.strategies import Ddp, StrategyNoun
from torchyard.translatable import TranslatableText


def _with_bare_defaults(schema: dict[str, Any]) -> None:
    """Name the defaults that are nouns: generators of clients refuse objects as defaults, and leave out all of it."""
    for field in schema["properties"].values():
        if isinstance(field.get("default"), dict):
            field["default"] = field["default"]["name"]


class Recipe(RecipeOptions):
    """One training run of the built-in trainer."""

    model_config = ConfigDict(json_schema_extra=_with_bare_defaults)

    model: ModelNoun = DigitsCnn()
    """The network that is trained."""
    data: DataNoun = Digits()
    """What it is trained on."""
    optim: OptimNoun = Adam()
    """How weights are updated."""
    schedule: ScheduleNoun = Constant()
    """How the learning rate changes over the epochs."""
    strategy: StrategyNoun = Ddp()
    """How the model is trained by several devices."""
    epochs: Count = 5
    """Passes over the training data."""
    batch_size: Count = 64
    """Samples per device and forward pass; the effective batch is this times devices, nodes and `accumulate`."""
    global_batch_size: Count | None = None
    """The effective batch itself, the same for any number of devices; instead of `batch_size`."""
    accumulate: Count = 1
    """Forward and backward passes for each step of the optimizer."""
    drop_last: bool = False
    """Leaves out the epoch's last samples if they are fewer than a whole pass, as batch normalisation may need."""
    seed: Annotated[int, Field(ge=0, lt=INT64.stop)] = 0
    """Fixes initial weights, the order of samples and all other chance."""
    deterministic: bool = False
    """Only algorithms that give the same bits in every run; slower on GPUs, and an error where there is none."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Type that forward and backward compute in; weights stay fp32 (automatic mixed precision)."""
    tf32: bool = False
    """Matrix products of fp32 on TensorFloat32 units, where a GPU has them."""
    cudnn_benchmark: bool = False
    """cuDNN tries its algorithms and keeps the fastest; for inputs of one size."""
    channels_last: bool = False
    """Images and convolutions in NHWC layout; under fsdp the images only."""
    compile: bool = False
    """`torch.compile` of the model; of each block under fsdp, of each stage under pipeline."""
    activation_checkpointing: bool = False
    """Activations are computed again in backward instead of being kept."""
    clip_norm: Rate | None = None
    """Gradients are scaled down to this norm."""
    ema_decay: Annotated[Fraction, Field(gt=0)] | None = None
    """An exponential moving average of the weights is kept with this decay, evaluated, and left as `ema.pt`."""
    num_workers: Annotated[int, Field(ge=0, le=256)] = 0
    """Processes per rank that load data; 0 loads in the rank itself."""
    log_every: Count | None = None
    """Steps between two reports of the training loss; left out, there is about one a second (`deterministic`: 10)."""
    evaluate_every: Count = 1
    """Epochs between two evaluations; the last epoch is always evaluated."""
    checkpoint_every: Count = 1
    """Epochs between two checkpoints; the last epoch always leaves one."""
    backend: Literal["auto", "gloo", "nccl", "mpi"] = "auto"
    """What carries tensors between ranks; auto is gloo for those on the CPU and NCCL for those on GPUs."""
    rendezvous: Literal["env", "file", "tcp"] = "env"
    """How ranks find each other: by the launcher's store, through a fresh file, or at its address over TCP."""
    timeout: Annotated[Duration, Field(gt=0)] = 600
    """How long ranks wait for one that hangs before they fail."""

    def effective_batch(self, processes: int, devices: int) -> int:
        """Samples of a step of the optimizer, by so many processes on so many devices, those of all nodes."""
        if self.global_batch_size is not None:
            return self.global_batch_size
        return self.accumulate * self.strategy.pass_size(self.batch_size, processes, devices)

    @model_serializer(mode="wrap")
    def _one_batch_size(self, given: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = given(self)
        if self.global_batch_size is not None:
            values.pop("batch_size", None)
        return values

    @model_validator(mode="after")
    def _batch(self) -> Self:
        if self.global_batch_size is not None and "batch_size" in self.model_fields_set:
            raise ValueError(
                TranslatableText(
                    "two-batch-sizes", "batch_size and global_batch_size exclude each other: keep one of them"
                )
            )
        if self.global_batch_size is not None and self.global_batch_size % self.accumulate:
            raise ValueError(
                TranslatableText(
                    "accumulate-divides",
                    "accumulate ({accumulate}) must divide global_batch_size ({global_batch_size})",
                    accumulate=self.accumulate,
                    global_batch_size=self.global_batch_size,
                )
            )
        return self

    @model_validator(mode="after")
    def _algorithms(self) -> Self:
        if self.deterministic and self.cudnn_benchmark:
            raise ValueError(
                TranslatableText(
                    "benchmark-deterministic",
                    "cudnn_benchmark chooses by time, which no run repeats: leave it out, or deterministic",
                )
            )
        if self.compile and self.activation_checkpointing:
            raise ValueError(
                TranslatableText(
                    "compile-checkpointing", "compile and activation_checkpointing exclude each other: keep one of them"
                )
            )
        return self

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.model.check(self.data)
        self.strategy.check(self)
        if self.schedule.warmup >= self.epochs:
            raise ValueError(
                TranslatableText(
                    "warmup-epochs",
                    "schedule.warmup ({warmup} epochs) must be less than epochs",
                    warmup=f"{self.schedule.warmup:g}",
                )
            )
        return self
