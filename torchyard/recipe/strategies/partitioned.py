"""Strategies that spread one model over several devices."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from torchyard.recipe.base import Count
from torchyard.recipe.strategies.base import StrategyOptions
from torchyard.translatable import TranslatableText

if TYPE_CHECKING:
    from torchyard.recipe import Recipe


class ModelParallel(StrategyOptions):
    """Layers placed over several devices by their size or time, activations moved between them."""

    cuts: ClassVar[bool] = True
    name: Literal["model_parallel"] = "model_parallel"
    """The strategy."""
    data_parallel: Count = 1
    """Replicas of the split model, each in a process of its own under DistributedDataParallel."""
    devices: Annotated[int, Field(ge=2)] | None = None
    """Devices of one replica; without it, the devices of the job divided by `data_parallel`."""
    balance: Literal["bytes", "time"] = "bytes"
    """What is shared out evenly: bytes of parameters, or time, by the operations of a forward pass."""

    def processes(self, devices: int) -> int:
        if devices % self.data_parallel or devices // self.data_parallel < 2:
            raise ValueError(
                TranslatableText(
                    "replica-devices",
                    "recipe.strategy model_parallel with data_parallel {data_parallel} needs at least two devices "
                    "for each replica, but resources.gpus is {devices}: take {needed}",
                    data_parallel=self.data_parallel,
                    devices=devices,
                    needed=2 * self.data_parallel,
                )
            )
        return self.data_parallel

    def check_ranks(self, ranks: int) -> None:
        if ranks % self.data_parallel:
            raise ValueError(
                TranslatableText(
                    "replica-ranks",
                    "strategy model_parallel has data_parallel {data_parallel}, but {ranks} processes were started: "
                    "start one for each replica",
                    data_parallel=self.data_parallel,
                    ranks=ranks,
                )
            )

    def devices_per_process(self, there: int | None) -> int:
        return self.devices or there or 2


class Pipeline(StrategyOptions):
    """Stages of layers, one or more on each rank, fed with microbatches (`torch.distributed.pipelining`)."""

    whole_gradients: ClassVar[bool] = False
    cuts: ClassVar[bool] = True
    name: Literal["pipeline"] = "pipeline"
    """The strategy."""
    schedule: Literal["gpipe", "1f1b", "interleaved"] = "gpipe"
    """Order in which forward and backward passes of microbatches alternate."""
    microbatches: Count = 4
    """Parts of a batch; must divide `batch_size`."""
    stages_per_rank: Annotated[int, Field(ge=2)] = 2
    """Stages of each rank under the interleaved schedule; the others have one."""
    balance: Literal["bytes", "time"] = "bytes"
    """What is shared out evenly: bytes of parameters, or time, by the operations of a forward pass."""

    def check(self, recipe: "Recipe") -> None:
        super().check(recipe)
        # All ranks together are one share of the samples.
        size, name = recipe.batch_size, "batch_size"
        if recipe.global_batch_size is not None:
            size, name = recipe.global_batch_size // recipe.accumulate, "global_batch_size / accumulate"
        if size % self.microbatches:
            raise ValueError(
                TranslatableText(
                    "microbatches-divide",
                    "strategy.microbatches ({microbatches}) must divide {name} ({size})",
                    microbatches=self.microbatches,
                    name=name,
                    size=size,
                )
            )

    def pass_size(self, batch_size: int, processes: int, devices: int) -> int:  # noqa: ARG002 (one share)
        return batch_size

    def check_ranks(self, ranks: int) -> None:
        if self.schedule == "1f1b" and self.microbatches < ranks:
            raise ValueError(
                TranslatableText(
                    "microbatches-stages",
                    "strategy.schedule 1f1b needs a microbatch for each of {ranks} stages: raise strategy.microbatches",
                    ranks=ranks,
                )
            )
        rounds = max(1, self.microbatches // ranks)
        if self.schedule == "interleaved" and self.microbatches % rounds:
            raise ValueError(
                TranslatableText(
                    "microbatches-rounds",
                    "strategy.schedule interleaved passes {microbatches} microbatches in {rounds} rounds over "
                    "{ranks} ranks, which does not come out even: take strategy.microbatches {even}",
                    microbatches=self.microbatches,
                    rounds=rounds,
                    ranks=ranks,
                    even=rounds * (self.microbatches // rounds + 1),
                )
            )


class Fsdp(StrategyOptions):
    """Fully sharded data parallelism (FSDP2): parameters, gradients and optimizer state are spread over the ranks."""

    whole_gradients: ClassVar[bool] = False
    name: Literal["fsdp"] = "fsdp"
    """The strategy."""
    tensor_parallel: Count = 1
    """Ranks that also share each layer's computation: the inner dimension of the device mesh."""
    reshard_after_forward: bool = True
    """Frees gathered parameters between forward and backward."""

    def pass_size(self, batch_size: int, processes: int, devices: int) -> int:  # noqa: ARG002
        return batch_size * (processes // self.tensor_parallel)

    def check_ranks(self, ranks: int) -> None:
        if ranks % self.tensor_parallel:
            raise ValueError(
                TranslatableText(
                    "tensor-parallel-groups",
                    "strategy.tensor_parallel is {tensor_parallel}, but {ranks} processes do not divide into groups "
                    "of that size: change one of them",
                    tensor_parallel=self.tensor_parallel,
                    ranks=ranks,
                )
            )


class TensorParallel(StrategyOptions):
    """Each layer's matrices split over all ranks (DTensor); all ranks see the same samples."""

    whole_gradients: ClassVar[bool] = False
    name: Literal["tensor_parallel"] = "tensor_parallel"
    """The strategy."""

    def pass_size(self, batch_size: int, processes: int, devices: int) -> int:  # noqa: ARG002 (one share)
        return batch_size

    def check_ranks(self, ranks: int) -> None:
        if ranks < 2:
            raise ValueError(
                TranslatableText(
                    "tensor-parallel-ranks",
                    "strategy tensor_parallel needs at least two ranks: take strategy: single for one, or "
                    "resources.gpus 2",
                )
            )
