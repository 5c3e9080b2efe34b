import pytest
import torch

from torchyard.recipe.strategies import Pipeline
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.strategies.pipeline import PipelineStrategy


def world(size: int) -> World:
    return World(rank=0, local_rank=0, size=size, devices=(torch.device("cpu"),))


def test_ranks_that_the_schedule_cannot_serve_are_refused() -> None:
    PipelineStrategy(Pipeline(schedule="1f1b", microbatches=3), world(3))
    with pytest.raises(RecipeError, match="a microbatch for each of 3 stages"):
        PipelineStrategy(Pipeline(schedule="1f1b", microbatches=2), world(3))
