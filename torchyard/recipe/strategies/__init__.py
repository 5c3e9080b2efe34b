"""Strategies to train a model on several devices, and the processes that each takes."""

from typing import Annotated

from pydantic import Field

from torchyard.recipe.base import named
from torchyard.recipe.strategies.base import StrategyOptions
from torchyard.recipe.strategies.partitioned import Fsdp, ModelParallel, Pipeline, TensorParallel
from torchyard.recipe.strategies.replicated import Broadcast, Ddp, Dp, ParameterServer, Ring, Single

__all__ = [
    "SYNONYMS",
    "Broadcast",
    "Ddp",
    "Dp",
    "Fsdp",
    "ModelParallel",
    "ParameterServer",
    "Pipeline",
    "Ring",
    "Single",
    "StrategyNoun",
    "StrategyOptions",
    "TensorParallel",
]

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
