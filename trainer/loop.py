"""The training loop."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torch import nn
from torch.optim import Optimizer

import torchyard
from torchyard.injob import control
from torchyard.recipe import Recipe
from trainer import checkpoint, randomness
from trainer.checkpoint import Position
from trainer.data import DATA, Batch, DataSets
from trainer.data.loading import batches
from trainer.data.sampler import TrainSampler
from trainer.distributed import World
from trainer.evaluation import evaluate
from trainer.models import MODELS
from trainer.objective import CLASSIFICATION, Objective
from trainer.optim import OPTIMIZERS
from trainer.schedule import SCHEDULES, Factor, set_rate
from trainer.strategies import STRATEGIES, Strategy
from trainer.window import Window

log = logging.getLogger("trainer")


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Everything a run is made of."""

    recipe: Recipe
    world: World
    data: DataSets
    objective: Objective
    strategy: Strategy
    #: The module whose forward is trained; `strategy.unwrap` gives the model itself.
    model: nn.Module
    optimizer: Optimizer
    factor: Factor
    sampler: TrainSampler


def build(recipe: Recipe, world: World) -> Parts:
    """Makes the parts; weights are the same on all ranks, later chance is each rank's own."""
    strategy = STRATEGIES[recipe.strategy.name](recipe.strategy, world)
    data = DATA[recipe.data.name](recipe.data)
    randomness.seed_all(recipe.seed)
    model = strategy.wrap(MODELS[recipe.model.name](recipe.model, data.shape).to(world.device))
    randomness.seed_all(randomness.derive(recipe.seed, "rank", world.rank))
    return Parts(
        recipe=recipe,
        world=world,
        data=data,
        objective=CLASSIFICATION,
        strategy=strategy,
        model=model,
        optimizer=OPTIMIZERS[recipe.optim.name](recipe.optim, model.parameters()),
        factor=SCHEDULES[recipe.schedule.name](recipe.schedule),
        sampler=TrainSampler(
            samples=len(data.train),  # type: ignore[arg-type]
            batch_size=recipe.batch_size,
            rank=world.rank,
            world=world.size,
            seed=recipe.seed,
        ),
    )


class Training:
    """One run, from wherever it is to its end."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.step = 0
        self.window = Window(parts.world.device)

    @property
    def total_steps(self) -> int:
        """Steps done and to come."""
        sampler = self.parts.sampler
        later = max(0, self.parts.recipe.epochs - sampler.epoch - 1)
        return self.step + len(sampler) + later * sampler.steps_in_epoch()

    def resume(self, folder: Path) -> None:
        """Continues where the checkpoint was taken, also inside an epoch."""
        parts = self.parts
        model = parts.strategy.unwrap(parts.model)
        recipe = parts.recipe.model_dump(mode="json")
        position, own = checkpoint.load(
            folder, model=model, optimizer=parts.optimizer, recipe=recipe, world=parts.world
        )
        self.step = position.step
        parts.sampler.set_epoch(position.epoch, position.consumed)
        if own is not None:
            randomness.restore(own.random, parts.world.device)
            self.window.restore(own.window)
        log.info("resumed at step %d, epoch %d", self.step, position.epoch + 1)

    def run(self) -> None:
        """Trains to the last epoch; each epoch ends with a checkpoint. Leaves by SystemExit(0) when stopped."""
        recipe, sampler = self.parts.recipe, self.parts.sampler
        self.window.go_on()
        while sampler.epoch < recipe.epochs:
            self._train_epoch()
            with self._paused():
                scores = self._evaluate() if self._evaluates() else {}
                sampler.set_epoch(sampler.epoch + 1)
                self._save(scores)

    def _evaluates(self) -> bool:
        done = self.parts.sampler.epoch + 1
        return done % self.parts.recipe.evaluate_every == 0 or done == self.parts.recipe.epochs

    def _train_epoch(self) -> None:
        parts = self.parts
        epoch = parts.sampler.epoch
        for batch in batches(parts.data.train, parts.sampler, parts.recipe, parts.world, epoch):
            self._train_step(batch)
            if self.step % parts.recipe.log_every == 0:
                self._log_loss()
            # The last step needs no question: evaluation asks, and the epoch's own checkpoint follows.
            if len(parts.sampler) and torchyard.should_checkpoint():
                with self._paused():
                    self._save({})

    def _train_step(self, batch: Batch) -> None:
        parts = self.parts
        samples, targets = batch
        step_samples = parts.sampler.step_size()
        set_rate(parts.optimizer, self.rate)
        loss = parts.objective.loss(parts.model(samples), targets)
        parts.optimizer.zero_grad()
        (loss * parts.strategy.loss_scale(step_samples)).backward()  # type: ignore[no-untyped-call]
        parts.optimizer.step()
        self.window.add(loss, len(targets), step_samples)
        parts.sampler.advance()
        self.step += 1

    @property
    def rate(self) -> float:
        """Learning rate of the next step."""
        recipe = self.parts.recipe
        return recipe.optim.lr * self.parts.factor(self.parts.sampler.progress, recipe.epochs)

    def _log_loss(self) -> None:
        rate = self.parts.optimizer.param_groups[0]["lr"]
        loss, throughput = self.window.read()
        self._report({"train/loss": loss, "lr": rate, "throughput": throughput})

    def _evaluate(self) -> dict[str, float]:
        parts = self.parts
        model = parts.strategy.unwrap(parts.model)
        scores = evaluate(model, parts.data, parts.objective, parts.recipe, parts.world, self._poll_in_evaluation)
        values = {f"val/{name}": value for name, value in scores.items()}
        self._report(values)
        if parts.world.leads:
            shown = "  ".join(f"{name} {value:.4f}" for name, value in values.items())
            log.info("epoch %d/%d  step %d  %s", parts.sampler.epoch + 1, parts.recipe.epochs, self.step, shown)
        return values

    def _poll_in_evaluation(self) -> None:
        # A checkpoint that is merely due can wait for the scores; a stop cannot, and evaluation starts anew later.
        if torchyard.should_checkpoint() and control.stopping():
            self._save({})

    def _report(self, values: dict[str, float]) -> None:
        if self.parts.world.leads:
            torchyard.report(step=self.step, total_steps=self.total_steps, metrics=values)

    def _save(self, scores: dict[str, float]) -> None:
        parts = self.parts
        with torchyard.checkpoint(step=self.step, metrics=scores) as folder:
            checkpoint.save(
                folder,
                model=parts.strategy.model_state(parts.model),
                optimizer=parts.optimizer,
                position=Position(step=self.step, epoch=parts.sampler.epoch, consumed=parts.sampler.consumed),
                window=self.window.state(),
                recipe=parts.recipe.model_dump(mode="json"),
                world=parts.world,
            )

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Keeps evaluation and checkpoints out of the throughput."""
        self.window.pause()
        yield
        self.window.go_on()
