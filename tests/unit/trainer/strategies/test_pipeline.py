import pytest
import torch

from torchyard.recipe.strategies import Pipeline
from trainer.distributed import World
from trainer.exceptions import RecipeError
from trainer.strategies.pipeline import check


def world(size: int) -> World:
    return World(rank=0, local_rank=0, size=size, devices=(torch.device("cpu"),))


@pytest.mark.parametrize(
    ("options", "ranks", "words"),
    [
        (Pipeline(microbatches=4), 2, r"microbatches \(4\) must divide the batch of 10"),
        (Pipeline(schedule="1f1b", microbatches=2), 3, "a microbatch for each of 3 stages"),
        (Pipeline(schedule="interleaved", microbatches=5), 2, "take strategy.microbatches 6"),
    ],
)
def test_what_does_not_go_together_is_refused(options: Pipeline, ranks: int, words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        check(options, world(ranks), 10)


@pytest.mark.parametrize(("schedule", "microbatches"), [("gpipe", 1), ("1f1b", 2), ("interleaved", 10)])
def test_what_goes_together_is_not(schedule: str, microbatches: int) -> None:
    check(Pipeline(schedule=schedule, microbatches=microbatches), world(2), 10)  # type: ignore[arg-type]
