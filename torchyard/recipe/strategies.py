"""Strategies to train a model on several devices, and the processes that each takes."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from torchyard.recipe.base import Count, RecipeOptions, named

if TYPE_CHECKING:
    from torchyard.recipe import Recipe


class StrategyOptions(RecipeOptions):
    """Base of all strategies: one process for each device."""

    refused: ClassVar[dict[str, str]] = {}
    """Options of PyTorch's own wrapper that are not taken, each with the reason."""

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, given: Any) -> Any:
        for name, reason in cls.refused.items():
            if isinstance(given, dict) and name in given:
                raise ValueError(f"{name} is not taken: {reason}")
        return given

    whole_gradients: ClassVar[bool] = True
    """Each rank that steps has all gradients, so that the ranks agree on fp16's loss scale."""
    cuts: ClassVar[bool] = False
    """Places the model's layers one by one."""

    def check(self, recipe: "Recipe") -> None:
        """Raise ValueError with the mend where other keys of the recipe do not go with it."""
        if recipe.precision == "fp16" and not self.whole_gradients:
            raise ValueError(f"precision fp16 is not for strategy {self._name}: take bf16, single, dp or ddp")
        if self.cuts and recipe.model.layered is False:
            raise ValueError(
                f"strategy {self._name} cuts the model into layers, but model {recipe.model.name} is no sequence of "
                "them: take strategy: ddp or fsdp, or another model"
            )

    def check_ranks(self, ranks: int) -> None:
        """Raise ValueError with the mend where so many processes, those of all nodes, cannot train."""

    @property
    def _name(self) -> str:
        return str(type(self).model_fields["name"].default)

    def processes(self, devices: int) -> int:
        """Processes on a node with so many devices (GPUs or CPU slots); raises ValueError when they do not fit."""
        return max(1, devices)

    def devices_per_process(self, there: int | None) -> int:  # noqa: ARG002
        """Devices of one process, of so many that there are for it; None: unknown, on a machine without GPUs."""
        return 1

    def pass_size(self, batch_size: int, processes: int, devices: int) -> int:  # noqa: ARG002
        """Samples of a pass when each device takes so many, by all processes on all devices of the job."""
        return batch_size * processes

    @property
    def servers_per_node(self) -> int:
        """Processes behind the others that have no device."""
        return 0

    @property
    def spans_nodes(self) -> bool:
        """True if the processes may be on several nodes."""
        return True


class OneProcess(StrategyOptions):
    """Base of strategies that run in one process."""

    def processes(self, devices: int) -> int:  # noqa: ARG002 (one, whatever there is)
        return 1

    def check_ranks(self, ranks: int) -> None:
        if ranks > 1:
            raise ValueError(f"strategy {self._name} is one process, but {ranks} were started: take strategy: ddp")

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

    refused: ClassVar[dict[str, str]] = {
        "dim": "samples lie along the first dimension of every batch, and are scattered along it",
        "output_device": "outputs are gathered on the first device, where the targets are: give it less by "
        "first_device_batch, or gather losses alone by loss_in_model",
        "device_ids": "the replicas are on the job's devices, all of them or the first `devices`",
    }

    name: Literal["dp"] = "dp"
    first_device_batch: Count | None = None
    """Samples of the first device, which also gathers; the others take `batch_size` (balanced DataParallel)."""
    loss_in_model: bool = False
    """Each replica computes its own loss; a vector of them is gathered, weighted by samples."""
    devices: Count | None = None
    """Replicas; without it, the devices of the job."""

    def check(self, recipe: "Recipe") -> None:
        super().check(recipe)
        if recipe.global_batch_size is not None and self.first_device_batch is not None:
            raise ValueError("strategy.first_device_batch needs batch_size, the share of the other devices")
        if recipe.compile:
            raise ValueError("compile is not for strategy dp, whose copies cannot be compiled: take ddp or single")

    def devices_per_process(self, there: int | None) -> int:
        return self.devices or there or 2

    def pass_size(self, batch_size: int, processes: int, devices: int) -> int:  # noqa: ARG002
        others = self.devices_per_process(devices) - 1
        return (self.first_device_batch or batch_size) + batch_size * others


class Broadcast(StrategyOptions):
    """Gradients are reduced to rank 0, averaged there and broadcast by hand: the step between dp and ddp."""

    name: Literal["broadcast"] = "broadcast"


class ParameterServer(StrategyOptions):
    """Workers send gradients to servers, which hold the parameters and the optimizer's state, on the CPU."""

    whole_gradients: ClassVar[bool] = False
    name: Literal["parameter_server"] = "parameter_server"
    servers: Count = 1
    """Servers, extra processes without a GPU; the parameters are spread over them by size."""
    asynchronous: Annotated[bool, Field(alias="async")] = False
    """A server applies each gradient as it comes; workers then compute on stale parameters."""

    def check(self, recipe: "Recipe") -> None:
        super().check(recipe)
        if self.asynchronous and recipe.ema_decay is not None:
            raise ValueError("ema_decay needs workers with equal weights: leave it out, or strategy.async")

    def check_ranks(self, ranks: int) -> None:
        if ranks <= self.servers:
            raise ValueError(
                f"strategy parameter_server has {self.servers} server(s) and no worker among {ranks} process(es): "
                f"start {self.servers + 1} or more"
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


class Ddp(StrategyOptions):
    """DistributedDataParallel: a replica on each rank, gradients averaged during backward."""

    refused: ClassVar[dict[str, str]] = {
        "dim": "one process has one device, so nothing is scattered",
        "output_device": "one process has one device, that of LOCAL_RANK",
        "device_ids": "one process has one device, that of LOCAL_RANK",
    }

    name: Literal["ddp"] = "ddp"
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
            raise ValueError("hook powersgd cannot be resumed with static_graph: leave one of them out")
        return self

    def check(self, recipe: "Recipe") -> None:
        super().check(recipe)
        if recipe.precision == "fp16" and self.hook == "powersgd":
            # One gradient that overflows would stay in what PowerSGD carries over to the next steps.
            raise ValueError("precision fp16 is not for strategy.hook powersgd: take bf16 or another hook")
        if self.static_graph and recipe.accumulate > 1:
            raise ValueError("strategy.static_graph fails with accumulate above 1 (PyTorch): leave one of them out")


class ModelParallel(StrategyOptions):
    """Layers placed over several devices by their size or time, activations moved between them."""

    cuts: ClassVar[bool] = True
    name: Literal["model_parallel"] = "model_parallel"
    data_parallel: Count = 1
    """Replicas of the split model, each in a process of its own under DistributedDataParallel."""
    devices: Annotated[int, Field(ge=2)] | None = None
    """Devices of one replica; without it, the devices of the job divided by `data_parallel`."""
    balance: Literal["bytes", "time"] = "bytes"
    """What is shared out evenly: bytes of parameters, or time, by the operations of a forward pass."""

    def processes(self, devices: int) -> int:
        if devices % self.data_parallel or devices // self.data_parallel < 2:
            raise ValueError(
                f"recipe.strategy model_parallel with data_parallel {self.data_parallel} needs at least two devices "
                f"for each replica, but resources.gpus is {devices}: take {2 * self.data_parallel}"
            )
        return self.data_parallel

    def check_ranks(self, ranks: int) -> None:
        if ranks % self.data_parallel:
            raise ValueError(
                f"strategy model_parallel has data_parallel {self.data_parallel}, but {ranks} processes were started: "
                "start one for each replica"
            )

    def devices_per_process(self, there: int | None) -> int:
        return self.devices or there or 2


class Pipeline(StrategyOptions):
    """Stages of layers, one or more on each rank, fed with microbatches (`torch.distributed.pipelining`)."""

    whole_gradients: ClassVar[bool] = False
    cuts: ClassVar[bool] = True
    name: Literal["pipeline"] = "pipeline"
    schedule: Literal["gpipe", "1f1b", "interleaved"] = "gpipe"
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
            raise ValueError(f"strategy.microbatches ({self.microbatches}) must divide {name} ({size})")

    def pass_size(self, batch_size: int, processes: int, devices: int) -> int:  # noqa: ARG002 (one share)
        return batch_size

    def check_ranks(self, ranks: int) -> None:
        if self.schedule == "1f1b" and self.microbatches < ranks:
            raise ValueError(
                f"strategy.schedule 1f1b needs a microbatch for each of {ranks} stages: raise strategy.microbatches"
            )
        rounds = max(1, self.microbatches // ranks)
        if self.schedule == "interleaved" and self.microbatches % rounds:
            raise ValueError(
                f"strategy.schedule interleaved passes {self.microbatches} microbatches in {rounds} rounds over "
                f"{ranks} ranks, which does not come out even: take strategy.microbatches "
                f"{rounds * (self.microbatches // rounds + 1)}"
            )


class Fsdp(StrategyOptions):
    """Fully sharded data parallelism (FSDP2): parameters, gradients and optimizer state are spread over the ranks."""

    whole_gradients: ClassVar[bool] = False
    name: Literal["fsdp"] = "fsdp"
    tensor_parallel: Count = 1
    """Ranks that also share each layer's computation: the inner dimension of the device mesh."""
    reshard_after_forward: bool = True
    """Frees gathered parameters between forward and backward."""

    def pass_size(self, batch_size: int, processes: int, devices: int) -> int:  # noqa: ARG002
        return batch_size * (processes // self.tensor_parallel)

    def check_ranks(self, ranks: int) -> None:
        if ranks % self.tensor_parallel:
            raise ValueError(
                f"strategy.tensor_parallel is {self.tensor_parallel}, but {ranks} processes do not divide into groups "
                "of that size: change one of them"
            )


class TensorParallel(StrategyOptions):
    """Each layer's matrices split over all ranks (DTensor); all ranks see the same samples."""

    whole_gradients: ClassVar[bool] = False
    name: Literal["tensor_parallel"] = "tensor_parallel"

    def pass_size(self, batch_size: int, processes: int, devices: int) -> int:  # noqa: ARG002 (one share)
        return batch_size

    def check_ranks(self, ranks: int) -> None:
        if ranks < 2:
            raise ValueError(
                "strategy tensor_parallel needs at least two ranks: take strategy: single for one, or resources.gpus 2"
            )


#: What libraries and papers call them.
SYNONYMS = {
    "dataparallel": "dp",
    "distributed": "ddp",
    "distributeddataparallel": "ddp",
    "allreduce": "ddp",
    "horovod": "ddp",
    "ringallreduce": "ring",
    "ps": "parameter_server",
    "mp": "model_parallel",
    "pp": "pipeline",
    "pipelineparallel": "pipeline",
    "gpipe": "pipeline",
    "1f1b": "pipeline",
    "fullyshardeddataparallel": "fsdp",
    "fsdp2": "fsdp",
    "zero": "fsdp",
    "zero3": "fsdp",
    "deepspeed": "fsdp",
    "tp": "tensor_parallel",
    "megatron": "tensor_parallel",
}

StrategyNoun = Annotated[
    Single | Dp | Broadcast | ParameterServer | Ring | Ddp | ModelParallel | Pipeline | Fsdp | TensorParallel,
    Field(discriminator="name"),
    named(
        *(Single, Dp, Broadcast, ParameterServer, Ring, Ddp, ModelParallel, Pipeline, Fsdp, TensorParallel),
        synonyms=SYNONYMS,
    ),
]
