"""Strategies by name. To add one: a file here, its options in `torchyard.recipe`, a line below."""

from collections.abc import Callable
from typing import Any

from trainer.distributed.world import World
from trainer.strategies.base import Strategy, TrainingTask
from trainer.strategies.broadcast import BroadcastStrategy
from trainer.strategies.ddp import DdpStrategy
from trainer.strategies.dp import DpStrategy
from trainer.strategies.fsdp import FsdpStrategy
from trainer.strategies.model_parallel import ModelParallelStrategy
from trainer.strategies.parameter_server import parameter_server
from trainer.strategies.pipeline import PipelineStrategy
from trainer.strategies.ring import RingStrategy
from trainer.strategies.single import SingleStrategy
from trainer.strategies.tensor_parallel import TensorParallelStrategy

__all__ = ["STRATEGIES", "Strategy", "TrainingTask"]

STRATEGIES: dict[str, Callable[[Any, World], Strategy]] = {
    "broadcast": BroadcastStrategy,
    "ddp": DdpStrategy,
    "dp": DpStrategy,
    "fsdp": FsdpStrategy,
    "model_parallel": ModelParallelStrategy,
    "parameter_server": parameter_server,
    "pipeline": PipelineStrategy,
    "ring": RingStrategy,
    "single": SingleStrategy,
    "tensor_parallel": TensorParallelStrategy,
}
