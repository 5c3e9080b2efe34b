"""How a model is trained on several devices, and how many processes that takes."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from torchyard.recipe.base import Count, Options, named


class Strategy(Options):
    """Base of all strategies: one process for each device."""

    def processes(self, devices: int) -> int:
        """Processes on a node with so many devices (GPUs or CPU slots); raises ValueError when they do not fit."""
        return max(1, devices)

    def devices_per_process(self, there: int | None) -> int:  # noqa: ARG002
        """Devices of one process, of so many that there are for it; None: unknown, on a machine without GPUs."""
        return 1

    @property
    def servers_per_node(self) -> int:
        """Processes behind the others that have no device."""
        return 0

    @property
    def spans_nodes(self) -> bool:
        """Whether the processes may be on several nodes."""
        return True


class OneProcess(Strategy):
    """Base of strategies that run in one process."""

    def processes(self, devices: int) -> int:  # noqa: ARG002 (one, whatever there is)
        return 1

    @property
    def spans_nodes(self) -> bool:
        return False


class Single(OneProcess):
    """One process, one device, no communication."""

    name: Literal["single"] = "single"

    def processes(self, devices: int) -> int:
        if devices > 1:
            raise ValueError("recipe.strategy single is one process: take resources.gpus 1 or strategy: ddp")
        return 1


class Dp(OneProcess):
    """DataParallel: one process scatters each batch over its devices, replicates the model and gathers the outputs."""

    name: Literal["dp"] = "dp"
    first_device_batch: Count | None = None
    """Samples of the first device, which also gathers; the others take `batch_size` (balanced DataParallel)."""
    loss_in_model: bool = False
    """Each replica computes its own loss; a vector of them is gathered, weighted by samples."""
    devices: Count | None = None
    """Replicas; without it, the devices of the job."""

    def devices_per_process(self, there: int | None) -> int:
        return self.devices or there or 2


class Broadcast(Strategy):
    """Gradients are reduced to rank 0, averaged there and broadcast by hand: the step between dp and ddp."""

    name: Literal["broadcast"] = "broadcast"


class ParameterServer(Strategy):
    """Workers send gradients to servers, which hold the parameters and the optimizer's state, on the CPU."""

    name: Literal["parameter_server"] = "parameter_server"
    servers: Count = 1
    """Servers, extra processes without a GPU; the parameters are spread over them by size."""
    asynchronous: Annotated[bool, Field(alias="async")] = False
    """A server applies each gradient as it comes; workers then compute on stale parameters."""

    def processes(self, devices: int) -> int:
        return max(1, devices) + self.servers

    @property
    def servers_per_node(self) -> int:
        return self.servers

    @property
    def spans_nodes(self) -> bool:
        return False


class Ring(Strategy):
    """Gradients are summed by a ring all-reduce written on send and receive."""

    name: Literal["ring"] = "ring"


class Ddp(Strategy):
    """DistributedDataParallel: a replica on each rank, gradients averaged during backward."""

    name: Literal["ddp"] = "ddp"
    find_unused_parameters: bool = False
    """For models that leave parameters out of some forward passes."""
    static_graph: bool = False
    """The graph is the same in all steps; from three ranks on, a resumed run may differ in the last bits."""
    bucket_cap_mb: Annotated[float, Field(gt=0)] | None = None
    """Size of the buckets that are reduced together; without it, PyTorch's own."""
    gradient_as_bucket_view: bool = False
    """Gradients are views of the buckets, which saves a copy."""
    sync_batch_norm: bool = False
    """Batch statistics over all ranks; GPUs only."""
    hook: Literal["allreduce", "bf16", "fp16", "powersgd"] = "allreduce"
    """How gradients are compressed on the way; PowerSGD adds as much as the gradients to each rank's checkpoint."""
    powersgd_rank: Count = 2
    """Rank of PowerSGD's approximation."""
    powersgd_start: Annotated[int, Field(ge=2)] = 1000
    """Steps before PowerSGD begins; a tenth of the training loses little accuracy."""

    @model_validator(mode="after")
    def _compression(self) -> Self:
        if self.hook == "powersgd" and self.static_graph:
            raise ValueError("hook powersgd cannot be resumed with static_graph: leave one of them out")
        return self


class ModelParallel(Strategy):
    """Layers placed over several devices by their size, activations moved between them."""

    name: Literal["model_parallel"] = "model_parallel"
    data_parallel: Count = 1
    """Replicas of the split model, each in a process of its own under DistributedDataParallel."""
    devices: Annotated[int, Field(ge=2)] | None = None
    """Devices of one replica; without it, the devices of the job divided by `data_parallel`."""

    def processes(self, devices: int) -> int:
        if devices % self.data_parallel or devices // self.data_parallel < 2:
            raise ValueError(
                f"recipe.strategy model_parallel with data_parallel {self.data_parallel} needs at least two devices "
                f"for each replica, but resources.gpus is {devices}: take {2 * self.data_parallel}"
            )
        return self.data_parallel

    def devices_per_process(self, there: int | None) -> int:
        return self.devices or there or 2


class Pipeline(Strategy):
    """Stages of layers, one or more on each rank, fed with microbatches (`torch.distributed.pipelining`)."""

    name: Literal["pipeline"] = "pipeline"
    schedule: Literal["gpipe", "1f1b", "interleaved"] = "gpipe"
    microbatches: Count = 4
    """Parts of a batch; must divide `batch_size`."""
    stages_per_rank: Annotated[int, Field(ge=2)] = 2
    """Stages of each rank under the interleaved schedule; the others have one."""


class Fsdp(Strategy):
    """Fully sharded data parallelism (FSDP2): parameters, gradients and optimizer state are spread over the ranks."""

    name: Literal["fsdp"] = "fsdp"
    tensor_parallel: Count = 1
    """Ranks that also share each layer's computation: the inner dimension of the device mesh."""
    reshard_after_forward: bool = True
    """Frees gathered parameters between forward and backward."""


class TensorParallel(Strategy):
    """Each layer's matrices split over all ranks (DTensor); all ranks see the same samples."""

    name: Literal["tensor_parallel"] = "tensor_parallel"


StrategyNoun = Annotated[
    Single | Dp | Broadcast | ParameterServer | Ring | Ddp | ModelParallel | Pipeline | Fsdp | TensorParallel,
    Field(discriminator="name"),
    named(Single, Dp, Broadcast, ParameterServer, Ring, Ddp, ModelParallel, Pipeline, Fsdp, TensorParallel),
]
