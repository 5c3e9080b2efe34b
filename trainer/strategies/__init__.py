"""Strategies by name. To add one: a file here, its options in `torchyard.recipe`, a line below."""

from collections.abc import Callable
from typing import Any

from trainer.distributed import World
from trainer.strategies.base import Strategy, Task
from trainer.strategies.ddp import DdpStrategy
from trainer.strategies.model_parallel import ModelParallelStrategy
from trainer.strategies.pipeline import PipelineStrategy
from trainer.strategies.single import SingleStrategy

__all__ = ["STRATEGIES", "Strategy", "Task"]

STRATEGIES: dict[str, Callable[[Any, World], Strategy]] = {
    "ddp": DdpStrategy,
    "model_parallel": ModelParallelStrategy,
    "pipeline": PipelineStrategy,
    "single": SingleStrategy,
}
