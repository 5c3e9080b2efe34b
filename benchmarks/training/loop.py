"""The trainer's loop against a DDP loop written by hand, on the same model, data and steps of 5 ms or a little more.

Both run in the same ranks, a segment of one after a segment of the other, inside an attempt: metrics are written and
the control file is polled, as in a job.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from torchyard.recipe import Recipe
from trainer.data import DATA
from trainer.data.sampler import BatchShares, TrainSampler
from trainer.distributed.process_group import joined
from trainer.distributed.world import World
from trainer.loop.components import build
from trainer.loop.training import Training
from trainer.models import MODELS

STEPS = 20
SEGMENTS = 240
BATCH = 64
STEP_MS = 5.0
WIDTHS = (100, 200, 300, 400, 500, 600, 700, 800, 1000, 1200, 1600)
RECIPE = Recipe.model_validate(
    {
        "model": "mlp",
        "data": {"name": "synthetic", "shape": [256]},
        "optim": {"name": "sgd", "lr": 0.01},
        "batch_size": BATCH,
    }
)


def by_hand(recipe: Recipe, world: World) -> Callable[[int], None]:
    """A plain loop as in PyTorch's tutorial; answers what trains one epoch."""
    data = DATA[recipe.data.name](recipe.data)
    torch.manual_seed(recipe.seed)
    model = DistributedDataParallel(MODELS[recipe.model.name](recipe.model, data.shape))
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.optim.lr, momentum=0.9)
    sampler = TrainSampler(
        samples=len(data.train),  # type: ignore[arg-type]
        size=BATCH * world.size,
        shares=BatchShares(index=world.rank, count=world.size),
        seed=recipe.seed,
    )
    loader = DataLoader(data.train, batch_sampler=sampler, collate_fn=lambda batch: batch)

    def epoch(number: int) -> None:
        sampler.set_epoch(number)
        for samples, targets in loader:
            loss = functional.cross_entropy(model(samples), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return epoch


def ours(recipe: Recipe, world: World) -> Callable[[int], None]:
    training = Training(build(recipe, world))

    def epoch(number: int) -> None:
        training.components.sampler.set_epoch(number)
        training.train_epoch(number)

    return epoch


def milliseconds(train: Callable[[int], None], epoch: int) -> float:
    """A step of this epoch, on average."""
    dist.barrier()
    began = time.perf_counter()
    train(epoch)
    dist.barrier()
    return (time.perf_counter() - began) / STEPS * 1000


def fitting(world: World) -> tuple[Recipe, Callable[[int], None]]:
    """The narrowest model whose step by hand takes `STEP_MS` on this machine."""
    samples = {"name": "synthetic", "shape": [256], "samples": STEPS * BATCH * world.size}
    for width in WIDTHS:
        model = {"name": "mlp", "hidden": [width, width]}
        recipe = Recipe.model_validate(RECIPE.model_dump() | {"model": model, "data": samples, "epochs": SEGMENTS + 1})
        train = by_hand(recipe, world)
        took = torch.tensor(min(milliseconds(train, 0) for _ in range(4)))
        dist.all_reduce(took, dist.ReduceOp.MAX)
        if took >= STEP_MS:
            break
    return recipe, train


def measure(world: World) -> dict[str, float]:
    recipe, hand = fitting(world)
    own = ours(recipe, world)
    milliseconds(own, 0)
    # The pair of a segment shares whatever else the machine is doing; every other pair begins with ours.
    pairs = []
    for epoch in range(1, SEGMENTS + 1):
        first, second = (hand, own) if epoch % 2 else (own, hand)
        took = milliseconds(first, epoch), milliseconds(second, epoch)
        pairs.append(took if epoch % 2 else took[::-1])
    return {
        "step_by_hand": statistics.median(pair[0] for pair in pairs),
        "step_of_the_trainer": statistics.median(pair[1] for pair in pairs),
        "overhead": statistics.median((pair[1] / pair[0] - 1) * 100 for pair in pairs),
    }


def main() -> None:
    with joined() as world:
        result = measure(world)
    if world.leads:
        Path(sys.argv[1]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
