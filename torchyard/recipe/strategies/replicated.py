"""Strategies with the whole model on each device."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from torchyard.recipe.base import Count
from torchyard.recipe.strategies.base import OneProcess, StrategyOptions
from torchyard.translatable import TranslatableText

if TYPE_CHECKING:
    from torchyard.recipe import Recipe


_LOCAL_RANK = TranslatableText("ddp-device", "one process has one device, that of LOCAL_RANK")


class Single(OneProcess):
    """One process, one device, no communication."""

    name: Literal["single"] = "single"
    """The strategy."""

    def processes(self, devices: int) -> int:
        if devices > 1:
            raise ValueError(
                TranslatableText(
                    "single-process", "recipe.strategy single is one process: take resources.gpus 1 or strategy: ddp"
                )
            )
        return 1


class Dp(OneProcess):
    """DataParallel: one process scatters each batch over its devices, replicates the model and gathers the outputs."""

    refused: ClassVar[dict[str, str]] = {
        "dim": TranslatableText(
            "dp-dim", "samples lie along the first dimension of every batch, and are scattered along it"
        ),
        "output_device": TranslatableText(
            "dp-output-device",
            "outputs are gathered on the first device, where the targets are: give it less by first_device_batch, "
            "or gather losses alone by loss_in_model",
        ),
        "device_ids": TranslatableText(
            "dp-device-ids", "the replicas are on the job's devices, all of them or the first `devices`"
        ),
    }

    name: Literal["dp"] = "dp"
    """The strategy."""
    first_device_batch: Count | None = None
    """Samples of the first device, which also gathers; the others take `batch_size` (balanced DataParallel)."""
    loss_in_model: bool = False
    """Each replica computes its own loss; a vector of them is gathered, weighted by samples."""
    devices: Count | None = None
    """Replicas; without it, the devices of the job."""

    def check(self, recipe: "Recipe") -> None:
        super().check(recipe)
        if recipe.global_batch_size is not None and self.first_device_batch is not None:
            raise ValueError(
                TranslatableText(
                    "first-device-batch", "strategy.first_device_batch needs batch_size, the share of the other devices"
                )
            )
        if recipe.compile:
            raise ValueError(
                TranslatableText(
                    "compile-dp", "compile is not for strategy dp, whose copies cannot be compiled: take ddp or single"
                )
            )

    def devices_per_process(self, there: int | None) -> int:
        return self.devices or there or 2

    def pass_size(self, batch_size: int, processes: int, devices: int) -> int:  # noqa: ARG002
        others = self.devices_per_process(devices) - 1
        return (self.first_device_batch or batch_size) + batch_size * others


class Broadcast(StrategyOptions):
    """Gradients are reduced to rank 0, averaged there and broadcast by hand: the step between dp and ddp."""

    name: Literal["broadcast"] = "broadcast"
    """The strategy."""


class ParameterServer(StrategyOptions):
    """Workers send gradients to servers, which hold the parameters and the optimizer's state, on the CPU."""

    whole_gradients: ClassVar[bool] = False
    name: Literal["parameter_server"] = "parameter_server"
    """The strategy."""
    servers: Count = 1
    """Servers, extra processes without a GPU; the parameters are spread over them by size."""
    asynchronous: Annotated[bool, Field(alias="async")] = False
    """A server applies each gradient as it comes; workers then compute on stale parameters."""

    def check(self, recipe: "Recipe") -> None:
        super().check(recipe)
        if self.asynchronous and recipe.ema_decay is not None:
            raise ValueError(
                TranslatableText(
                    "ema-equal-weights", "ema_decay needs workers with equal weights: leave it out, or strategy.async"
                )
            )

    def check_ranks(self, ranks: int) -> None:
        if ranks <= self.servers:
            raise ValueError(
                TranslatableText(
                    "servers-workers",
                    "strategy parameter_server has {servers} server(s) and no worker among {ranks} process(es): "
                    "start {least} or more",
                    servers=self.servers,
                    ranks=ranks,
                    least=self.servers + 1,
                )
            )

    def processes(self, devices: int) -> int:
        return max(1, devices) + self.servers

    def pass_size(self, batch_size: int, processes: int, devices: int) -> int:  # noqa: ARG002
        return batch_size * (processes - self.servers)

    @property
    def servers_per_node(self) -> int:
        return self.servers

    @property
    def spans_nodes(self) -> bool:
        return False


class Ring(StrategyOptions):
    """Gradients are summed by a ring all-reduce written on send and receive."""

    name: Literal["ring"] = "ring"
    """The strategy."""


class Ddp(StrategyOptions):
    """DistributedDataParallel: a replica on each rank, gradients averaged during backward."""

    refused: ClassVar[dict[str, str]] = {
        "dim": TranslatableText("ddp-dim", "one process has one device, so nothing is scattered"),
        "output_device": _LOCAL_RANK,
        "device_ids": _LOCAL_RANK,
    }

    name: Literal["ddp"] = "ddp"
    """The strategy."""
    find_unused_parameters: bool = False
    """For models that leave parameters out of some forward passes; off, because each step then walks the graph."""
    static_graph: bool = False
    """The graph is the same in all steps; from three ranks on, a resumed run may differ in the last bits."""
    bucket_cap_mb: Annotated[float, Field(gt=0)] | None = None
    """Size of the buckets that are reduced together; without it, PyTorch's own."""
    gradient_as_bucket_view: bool = False
    """Gradients are views of the buckets, which saves a copy."""
    sync_batch_norm: bool = False
    """Batch statistics over all ranks (SyncBatchNorm)."""
    hook: Literal["allreduce", "bf16", "fp16", "powersgd"] = "allreduce"
    """How gradients are compressed on the way; PowerSGD adds as much as the gradients to each rank's checkpoint."""
    powersgd_rank: Count = 2
    """Rank of PowerSGD's approximation."""
    powersgd_start: Annotated[int, Field(ge=2)] = 1000
    """Steps before PowerSGD begins; a tenth of the training loses little accuracy."""

    @model_validator(mode="after")
    def _compression(self) -> Self:
        if self.hook == "powersgd" and self.static_graph:
            raise ValueError(
                TranslatableText(
                    "powersgd-static-graph", "hook powersgd cannot be resumed with static_graph: leave one of them out"
                )
            )
        return self

    def check(self, recipe: "Recipe") -> None:
        super().check(recipe)
        if recipe.precision == "fp16" and self.hook == "powersgd":
            # One gradient that overflows would stay in what PowerSGD carries over to the next steps.
            raise ValueError(
                TranslatableText(
                    "powersgd-fp16", "precision fp16 is not for strategy.hook powersgd: take bf16 or another hook"
                )
            )
        if self.static_graph and recipe.accumulate > 1:
            raise ValueError(
                TranslatableText(
                    "static-graph-accumulate",
                    "strategy.static_graph fails with accumulate above 1 (PyTorch): leave one of them out",
                )
            )
