"""The training loop."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import torchyard
from torchyard.injob import control, layout
from torchyard.injob.exceptions import CheckpointError, ResumeError
from torchyard.network import speed
from trainer.data.loading import Batch, Pair, load, padded
from trainer.data.sampler import TrainSampler
from trainer.distributed import bandwidth
from trainer.loop import proof
from trainer.loop.best_score import Best
from trainer.loop.components import Parts
from trainer.loop.evaluation import evaluate
from trainer.loop.log_interval import STEPS_IF_DETERMINISTIC, Pace
from trainer.loop.metrics_window import Window

log = logging.getLogger("trainer")
SHARDS = "shards"
MEND = "resume with the recipe that wrote it, or start a new job"


class Training:
    """One run, from wherever it is to its end."""

    def __init__(self, parts: Parts, restore: Path | None = None) -> None:
        self.parts = parts
        self.window = Window(parts.world, parts.correct, counts=parts.strategy.counts)
        recipe = parts.recipe
        self.pace = Pace(recipe.log_every or (STEPS_IF_DETERMINISTIC if recipe.deterministic else None))
        self._begun: Iterator[Pair] | None = None
        self._network_judged = False
        self.best = Best(os.environ)
        self.state = torchyard.attach(restore=restore, loader=parts.sampler, **self._saved())
        self.best.restore((self.state.extra or {}).get("best", {}))
        parts.strategy.restored()
        self.resumed_step = self.step

    def _saved(self) -> dict[str, Any]:
        """What makes up a checkpoint."""
        parts, strategy = self.parts, self.parts.strategy
        model, optimizer = strategy.saved()
        own: dict[str, Any] = {"window": self.window, **strategy.own()}
        everywhere: dict[str, Any] = {"scaler": strategy.scaler}
        if parts.average is not None and strategy.sharded:
            model = [*model, parts.average]  # in pieces, as the parameters are
        elif parts.average is not None:
            everywhere["ema"] = parts.average
        return {
            "model": model,
            "optimizer": optimizer,
            "sharded": strategy.sharded,
            "ranks": own,
            "extra": {
                "recipe": parts.recipe.model_dump(mode="json"),
                "sharded": strategy.sharded,
                "best": self.best.state,
            },
            "check": self._check,
            **everywhere,
        }

    def _check(self, extra: dict[str, Any]) -> None:
        """Raises ResumeError when a checkpoint does not hold what this recipe goes on from."""
        saved, recipe = extra.get("recipe", {}), self.parts.recipe.model_dump(mode="json")
        there, here = held(saved, extra.get("sharded")), held(recipe, self.parts.strategy.sharded)
        if there["strategy"] == SHARDS:
            there["strategy"] = here["strategy"]  # pieces can be put together, or cut anew
        for what, value in here.items():
            if there[what] != value:
                raise ResumeError(f"{what}: the checkpoint holds {there[what]}, the recipe says {value}: {MEND}")
        if recipe["precision"] == "fp16" != saved["precision"]:
            raise ResumeError(f"precision: the checkpoint holds no loss scale for fp16: take bf16, or {MEND}")

    @property
    def step(self) -> int:
        """Steps of the optimizer done, counted over the attempts of the job."""
        return int(self.state.step)

    @property
    def total_steps(self) -> int:
        """Steps done and to come."""
        sampler = self.parts.sampler
        later = max(0, self.parts.recipe.epochs - sampler.epoch - 1)
        return self.step + sampler.steps_left() + later * sampler.steps_in_epoch()

    def run(self) -> None:
        """Trains to the last epoch. Leaves by SystemExit(0) when stopped, after a checkpoint."""
        self._announce()
        recipe, sampler = self.parts.recipe, self.parts.sampler
        self.window.begin()
        for epoch in self.state.epochs(recipe.epochs):
            self.train_epoch(epoch)
            self._begin(epoch + 1)
            with self.window.paused():
                scores = self._evaluate() if self._due(recipe.evaluate_every) else {}
                improved = self.best.improved(scores)
                # Asked for or due by time as well: an epoch may have no step after which that is asked.
                saves = improved or self._due(recipe.checkpoint_every) or torchyard.should_checkpoint()
                sampler.set_epoch(epoch + 1)
                self.state.end_epoch()
                if saves:
                    self._save(scores)
        lost = self.state.finish()
        self._export()
        proof.record(self.parts.strategy, recipe.strategy.name, self.step - self.resumed_step, self.parts.world)
        if lost is not None:
            # The last epoch always leaves one: what was trained would be gone, and nobody told.
            raise CheckpointError(lost)

    def _export(self) -> None:
        """Leaves portable files: the model, where its checkpoints are in pieces, and with averaged weights."""
        if self.parts.strategy.sharded:
            self._export_as("model.pt")
        if self.parts.average is not None:
            with self._averaged():
                self._export_as("ema.pt")

    def _export_as(self, name: str) -> None:
        folder = os.environ.get(layout.OUTPUT_DIR)
        whole = self.parts.strategy.whole_state() if folder else {}
        if self.parts.world.leads and folder:
            torch.save(whole, Path(folder) / name)

    def _announce(self) -> None:
        recipe, strategy = self.parts.recipe, self.parts.strategy
        shown = proof.record(strategy, recipe.strategy.name, 0, self.parts.world)
        if shown is None:
            return
        if self.state.resumed:
            log.info("resumed at step %d, epoch %d", self.step, self.state.epoch + 1)
        size, passes = self.parts.sampler.effective_batch, recipe.accumulate
        log.info(
            "strategy %s  ranks %d  effective batch %d = %d share(s) x %d samples x %d pass(es)",
            *(recipe.strategy.name, self.parts.world.size, size),
            *(strategy.shares.count, size // passes // strategy.shares.count, passes),
        )

    def _due(self, every: int) -> bool:
        done = self.parts.sampler.epoch + 1
        return done % every == 0 or done == self.parts.recipe.epochs

    def train_epoch(self, epoch: int) -> None:
        """From the sampler's place to the end of the epoch; without evaluation."""
        parts, strategy, window = self.parts, self.parts.strategy, self.window
        counts = strategy.counts
        for batch in self.batches(epoch):
            loss = strategy.backward(batch)
            if counts:
                window.add(loss, batch.count)
            if not batch.last:
                continue
            measured = self.pace.due(self.state.step + 1)
            rate = self.rate
            norm = strategy.update(rate, measure=measured)
            if parts.average is not None:
                parts.average.update()
            window.step(batch.step_size)
            parts.sampler.advance(batch.step_size)
            self.state.advance()
            if measured:
                self._log(rate, norm)
            # The last step has nothing to save: evaluation asks again, and the epoch's own checkpoint follows.
            if torchyard.should_checkpoint() and parts.sampler.steps_left():
                with window.paused():
                    self._save({})

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The passes of this process, from the sampler's place to the end of the epoch."""
        parts, strategy = self.parts, self.parts.strategy
        # The sampler's place moves while the loader reads: both plans are drawn from here.
        plan = list(parts.sampler.plan())
        if not strategy.loads:
            for micro in plan:
                yield Batch(inputs=None, targets=None, count=0, step_size=micro.step_size, last=micro.last)
            return
        begun, self._begun = self._begun, None
        pairs = self._load(epoch, parts.sampler) if begun is None else begun
        began = time.perf_counter()
        for micro, pair in zip(plan, pairs, strict=True):
            self.window.waited += time.perf_counter() - began
            count = pair[0].size(0)
            inputs, targets = padded(pair, strategy.task.share_size) if strategy.equal_batches else pair
            yield Batch(inputs=inputs, targets=targets, count=count, step_size=micro.step_size, last=micro.last)
            began = time.perf_counter()

    def _begin(self, epoch: int) -> None:
        """Has loader processes fetch the first samples of an epoch while the model is evaluated and saved."""
        recipe = self.parts.recipe
        if recipe.num_workers and self.parts.strategy.loads and epoch < recipe.epochs:
            self._begun = self._load(epoch, self.parts.sampler.at(epoch))

    def _load(self, epoch: int, sampler: TrainSampler) -> Iterator[Pair]:
        parts = self.parts
        parts.data.begin(parts.recipe.seed, epoch)
        stream = ("train", epoch, parts.strategy.shares.index)
        return load(parts.data.train, sampler, parts.recipe, parts.world.device, stream)

    @property
    def rate(self) -> float:
        """Learning rate of the next step."""
        recipe = self.parts.recipe
        return recipe.optim.lr * self.parts.factor(self.parts.sampler.progress, recipe.epochs)

    def _log(self, rate: float, norm: Tensor | None) -> None:
        strategy = self.parts.strategy
        values = self.window.read(strategy.device_count)
        self.pace.reported(values["step_time"])
        values |= self._judge_network(values["step_time"])
        values["lr"] = rate
        if norm is not None:
            values["gradient_norm"] = float(norm)
        self._report(values | strategy.measures())

    def _judge_network(self, step_time: float) -> dict[str, float]:
        """Once, on several nodes: how fast they talk; says when that is what the training waits for."""
        count = bandwidth.nodes(self.parts.world, os.environ)
        steps = self.step - self.resumed_step
        # A first step is slower than the others.
        if count == 1 or steps == 1 or self._network_judged:
            return {}
        self._network_judged = True
        rate = bandwidth.measure(self.parts.world)
        sent = self.parts.strategy.bytes_sent / steps
        if self.parts.world.leads and (warning := bandwidth.advice(rate, sent, step_time, count)):
            log.warning(warning)
        return {speed.METRIC: rate}

    def _report(self, values: dict[str, float]) -> None:
        if self.parts.world.leads:
            torchyard.report(step=self.step, total_steps=self.total_steps, metrics=values)

    def _evaluate(self) -> dict[str, float]:
        parts = self.parts
        with self._averaged():
            scores = evaluate(parts.strategy, parts.data.validation, parts.recipe, self._poll_in_evaluation)
        values = {f"val/{name}": value for name, value in scores.items()}
        self._report(values)
        if parts.world.leads:
            shown = "  ".join(f"{name} {value:.4f}" for name, value in values.items())
            log.info("epoch %d/%d  step %d  %s", parts.sampler.epoch + 1, parts.recipe.epochs, self.step, shown)
            if self.best.lacks(values):
                log.warning(f"keep_best: no evaluation has its metric: take one of {', '.join(values)}")
        return values

    def _averaged(self) -> AbstractContextManager[None]:
        """Exchanges the weights with their moving average, if one is kept; twice is not at all."""
        return nullcontext() if self.parts.average is None else self.parts.average.exchanged()

    def _poll_in_evaluation(self) -> None:
        # A checkpoint that is merely due can wait for the scores; a stop cannot, and evaluation starts anew later.
        if torchyard.should_checkpoint() and control.stopping():
            with self._averaged():
                self._save({})

    def _save(self, scores: dict[str, float]) -> None:
        self.parts.strategy.align()
        self.state.save(metrics=scores)


def held(recipe: dict[str, Any], sharded: bool | None) -> dict[str, Any]:
    """What is in the checkpoints of a recipe (as plain data), by the key that decides it."""
    return {
        "model": recipe.get("model"),
        "optim": recipe.get("optim", {}).get("name"),
        "ema_decay": "no average" if recipe.get("ema_decay") is None else "an average",
        "strategy": SHARDS if sharded else "a whole model",
    }
