"""``python -m trainer.bench.rank case.json out.json`` under torchrun: times one training."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from torchyard.recipe import Recipe
from trainer.data.loading import Batch
from trainer.distributed.collectives import gather_to_rank_0
from trainer.distributed.process_group import joined
from trainer.distributed.world import World
from trainer.exceptions import BenchError
from trainer.loop.components import Components, build
from trainer.loop.training import Training


def endless(training: Training) -> Iterator[Batch]:
    """Batches of one epoch after another; data that is downloaded has been by then."""
    sampler, epoch = training.components.sampler, 0
    while True:
        sampler.set_epoch(epoch)
        yield from training.batches(epoch)
        epoch += 1


def advance(components: Components, batches: Iterator[Batch], steps: int) -> int:
    """Take so many steps of the optimizer, to their end on the device; returns the samples of all shares in them."""
    samples = 0
    while steps:
        batch = next(batches)
        components.strategy.backward(batch)
        if batch.last:
            components.strategy.update(components.recipe.optim.lr, measure=False)
            samples += batch.step_size  # an epoch's last step may have fewer passes
            steps -= 1
    if components.world.device.type == "cuda":
        torch.cuda.synchronize()
    return samples


def segments(
    training: Training, *, warm_up: int, steps: int, repeats: int, saving: bool = False
) -> tuple[list[float], list[int]]:
    """Seconds and samples of each of `repeats` segments of `steps` steps, after a warm-up.

    With `saving` each ends with a checkpoint, as a training takes it: copied at once and written beside the steps that
    follow; the last one until it is written.
    """
    batches = endless(training)
    advance(training.components, batches, warm_up)
    training.components.strategy.bytes_sent = 0
    seconds, samples = [], []
    for number in range(repeats):
        dist.barrier()
        began = time.perf_counter()
        samples.append(advance(training.components, batches, steps))
        if saving:
            save(training, steps, last=number == repeats - 1)
        dist.barrier()
        seconds.append(time.perf_counter() - began)
    return seconds, samples


def save(training: Training, steps: int, *, last: bool) -> None:
    """Write a checkpoint after so many more steps; of those before only the newest stays."""
    if training.components.world.leads:
        for old in sorted(Path("checkpoints").glob("step-*[0-9]"))[:-1]:
            shutil.rmtree(old)
    for _ in range(steps):
        training.state.advance()
    training.components.strategy.align()
    taken = training.state.save()
    if not taken or (last and training.state.finish() is not None):
        raise BenchError("a checkpoint could not be saved: leave --save out, or make room in TMPDIR")


def measure(given: dict[str, Any], world: World) -> dict[str, Any] | None:
    """Time the training; returns what rank 0 writes down, None on the others."""
    recipe = Recipe.model_validate(given["recipe"])
    training = Training(build(recipe, world))
    epochs: int | None = given.get("epochs")
    steps, repeats = given["steps"], given["repeats"]
    if epochs:
        steps, repeats = training.components.sampler.steps_in_epoch(), epochs
    seconds, samples = segments(
        training, warm_up=given["warm_up"], steps=steps, repeats=repeats, saving=given.get("saving", False)
    )
    strategy = training.components.strategy
    own = {"sent": strategy.bytes_sent // (steps * repeats), "proof": strategy.proof()}
    ranks = gather_to_rank_0(own, world)
    if not world.leads:
        return None
    return {
        "seconds": seconds,
        "samples": samples,
        "bytes_sent": [rank["sent"] for rank in ranks],
        "proof": [rank["proof"] for rank in ranks],
        "device": str(world.device),
    }


def main() -> None:
    case, out = sys.argv[1:]
    given = json.loads(Path(case).read_text())
    with joined(Recipe.model_validate(given["recipe"]).strategy) as world:
        result = measure(given, world)
    if result is not None:
        Path(out).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
