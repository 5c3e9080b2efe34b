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
from torchyard.injob import control, files, layout
from torchyard.injob.exceptions import CheckpointError, ResumeError
from torchyard.network import speed
from trainer.data.loading import Batch, Pair, load, padded
from trainer.data.sampler import TrainSampler
from trainer.distributed import bandwidth
from trainer.loop import proof
from trainer.loop.best_score import BestScore
from trainer.loop.components import Components
from trainer.loop.evaluation import evaluate
from trainer.loop.log_interval import STEPS_IF_DETERMINISTIC, LogInterval
from trainer.loop.metrics_window import MetricsWindow

log = logging.getLogger("trainer")
SHARDS = "shards"
MEND = "resume with the recipe that wrote it, or start a new job"


class Training:
    """One run, from wherever it is to its end."""

    def __init__(self, components: Components, restore: Path | None = None) -> None:
        self.components = components
        self.window = MetricsWindow(components.world, components.correct, counts=components.strategy.counts)
        recipe = components.recipe
        self.interval = LogInterval(recipe.log_every or (STEPS_IF_DETERMINISTIC if recipe.deterministic else None))
        self._begun: Iterator[Pair] | None = None
        self._network_judged = False
        self.best = BestScore(os.environ)
        self.state = torchyard.attach(restore=restore, loader=components.sampler, **self._saved())
        self.best.restore((self.state.extra or {}).get("best", {}))
        components.strategy.restored()
        self.resumed_step = self.step

    def _saved(self) -> dict[str, Any]:
        """Return the objects and options of a checkpoint."""
        components, strategy = self.components, self.components.strategy
        model, optimizer = strategy.saved()
        own: dict[str, Any] = {"window": self.window, **strategy.own()}
        everywhere: dict[str, Any] = {"scaler": strategy.scaler}
        if components.average is not None and strategy.sharded:
            model = [*model, components.average]  # in pieces, as the parameters are
        elif components.average is not None:
            everywhere["ema"] = components.average
        return {
            "model": model,
            "optimizer": optimizer,
            "sharded": strategy.sharded,
            "ranks": own,
            "extra": {
                "recipe": components.recipe.model_dump(mode="json"),
                "sharded": strategy.sharded,
                "best": self.best.state,
            },
            "check": self._check,
            **everywhere,
        }

    def _check(self, extra: dict[str, Any]) -> None:
        """Raise ResumeError when a checkpoint does not hold what this recipe goes on from."""
        saved, recipe = extra.get("recipe", {}), self.components.recipe.model_dump(mode="json")
        there, here = held(saved, extra.get("sharded")), held(recipe, self.components.strategy.sharded)
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
        sampler = self.components.sampler
        later = max(0, self.components.recipe.epochs - sampler.epoch - 1)
        return self.step + sampler.steps_left() + later * sampler.steps_in_epoch()

    def run(self) -> None:
        """Train to the last epoch. Leaves by SystemExit(0) when stopped, after a checkpoint."""
        self._announce()
        recipe, sampler = self.components.recipe, self.components.sampler
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
        proof.record(
            self.components.strategy, recipe.strategy.name, self.step - self.resumed_step, self.components.world
        )
        if lost is not None:
            # The last epoch always leaves one: what was trained would be gone, and nobody told.
            raise CheckpointError(lost)

    def _export(self) -> None:
        """Write portable files: the model, where its checkpoints are sharded, and with averaged weights."""
        if self.components.strategy.sharded:
            self._export_as("model.pt")
        if self.components.average is not None:
            with self._averaged():
                self._export_as("ema.pt")

    def _export_as(self, name: str) -> None:
        folder = os.environ.get(layout.OUTPUT_DIR)
        whole = self.components.strategy.whole_state() if folder else {}
        if self.components.world.leads and folder:
            files.write_whole(str(Path(folder) / name), lambda file: torch.save(whole, file))

    def _announce(self) -> None:
        recipe, strategy = self.components.recipe, self.components.strategy
        shown = proof.record(strategy, recipe.strategy.name, 0, self.components.world)
        if shown is None:
            return
        if self.state.resumed:
            log.info("resumed at step %d, epoch %d", self.step, self.state.epoch + 1)
        if self.components.sampler.begun_anew:
            log.warning("the data or the seed are not those of the checkpoint: its epoch begins anew")
        size, passes = self.components.sampler.effective_batch, recipe.accumulate
        log.info(
            "strategy %s  ranks %d  effective batch %d = %d share(s) x %d samples x %d pass(es)",
            *(recipe.strategy.name, self.components.world.size, size),
            *(strategy.shares.count, size // passes // strategy.shares.count, passes),
        )

    def _due(self, every: int) -> bool:
        done = self.components.sampler.epoch + 1
        return done % every == 0 or done == self.components.recipe.epochs

    def train_epoch(self, epoch: int) -> None:
        """Train from the sampler's place to the end of the epoch; without evaluation."""
        components, strategy, window = self.components, self.components.strategy, self.window
        counts = strategy.counts
        for batch in self.batches(epoch):
            loss = strategy.backward(batch)
            if counts:
                window.add(loss, batch.count)
            if not batch.last:
                continue
            measured = self.interval.due(self.state.step + 1)
            rate = self.rate
            norm = strategy.update(rate, measure=measured)
            if components.average is not None and not strategy.skipped:
                components.average.update()
            window.step(batch.step_size)
            components.sampler.advance(batch.step_size)
            self.state.advance()
            if measured:
                self._log(rate, norm)
            # The last step has nothing to save: evaluation asks again, and the epoch's own checkpoint follows.
            if torchyard.should_checkpoint() and components.sampler.steps_left():
                with window.paused():
                    self._save({})

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Yield the passes of this process, from the sampler's place to the end of the epoch."""
        components, strategy = self.components, self.components.strategy
        # The sampler's place moves while the loader reads: both plans are drawn from here.
        plan = list(components.sampler.plan())
        if not strategy.loads:
            for micro in plan:
                yield Batch(inputs=None, targets=None, count=0, step_size=micro.step_size, last=micro.last)
            return
        begun, self._begun = self._begun, None
        pairs = self._load(epoch, components.sampler) if begun is None else begun
        began = time.perf_counter()
        for micro, pair in zip(plan, pairs, strict=True):
            self.window.waited += time.perf_counter() - began
            count = pair[0].size(0)
            inputs, targets = padded(pair, strategy.task.share_size) if strategy.equal_batches else pair
            yield Batch(inputs=inputs, targets=targets, count=count, step_size=micro.step_size, last=micro.last)
            began = time.perf_counter()

    def _begin(self, epoch: int) -> None:
        """Have loader processes fetch the first samples of an epoch while the model is evaluated and saved."""
        recipe = self.components.recipe
        if recipe.num_workers and self.components.strategy.loads and epoch < recipe.epochs:
            self._begun = self._load(epoch, self.components.sampler.at(epoch))

    def _load(self, epoch: int, sampler: TrainSampler) -> Iterator[Pair]:
        components = self.components
        components.data.begin(components.recipe.seed, epoch)
        stream = ("train", epoch, components.strategy.shares.index)
        return load(components.data.train, sampler, components.recipe, components.world.device, stream)

    @property
    def rate(self) -> float:
        """Learning rate of the next step."""
        recipe = self.components.recipe
        return recipe.optim.lr * self.components.factor(self.components.sampler.progress, recipe.epochs)

    def _log(self, rate: float, norm: Tensor | None) -> None:
        strategy = self.components.strategy
        values = self.window.read(strategy.device_count)
        self.interval.reported(values["step_time"])
        values |= self._judge_network(values["step_time"])
        values["lr"] = rate
        if norm is not None:
            values["gradient_norm"] = float(norm)
        self._report(values | strategy.measures())

    def _judge_network(self, step_time: float) -> dict[str, float]:
        """Measure the network once, on several nodes, and warn when training waits for it."""
        count = bandwidth.nodes(self.components.world, os.environ)
        steps = self.step - self.resumed_step
        # A first step is slower than the others.
        if count == 1 or steps == 1 or self._network_judged:
            return {}
        self._network_judged = True
        rate = bandwidth.measure(self.components.world)
        sent = self.components.strategy.bytes_sent / steps
        if self.components.world.leads and (warning := bandwidth.advice(rate, sent, step_time, count)):
            log.warning(warning)
        return {speed.METRIC: rate}

    def _report(self, values: dict[str, float]) -> None:
        if self.components.world.leads:
            torchyard.report(step=self.step, total_steps=self.total_steps, metrics=values)

    def _evaluate(self) -> dict[str, float]:
        components = self.components
        with self._averaged():
            scores = evaluate(
                components.strategy, components.data.validation, components.recipe, self._poll_in_evaluation
            )
        values = {f"val/{name}": value for name, value in scores.items()}
        self._report(values)
        if components.world.leads:
            shown = "  ".join(f"{name} {value:.4f}" for name, value in values.items())
            log.info(
                "epoch %d/%d  step %d  %s", components.sampler.epoch + 1, components.recipe.epochs, self.step, shown
            )
            if self.best.lacks(values):
                log.warning(f"keep_best: no evaluation has its metric: take one of {', '.join(values)}")
        return values

    def _averaged(self) -> AbstractContextManager[None]:
        """Exchange the weights with their moving average, if one is kept; twice is not at all."""
        return nullcontext() if self.components.average is None else self.components.average.exchanged()

    def _poll_in_evaluation(self) -> None:
        # A checkpoint that is merely due can wait for the scores; a stop cannot, and evaluation starts anew later.
        if torchyard.should_checkpoint() and control.stopping():
            with self._averaged():
                self._save({})

    def _save(self, scores: dict[str, float]) -> None:
        self.components.strategy.align()
        self.state.save(metrics=scores)


def held(recipe: dict[str, Any], sharded: bool | None) -> dict[str, Any]:
    """Return what the checkpoints of a recipe (as plain data) hold, by the key that decides it."""
    return {
        "model": recipe.get("model"),
        "optim": recipe.get("optim", {}).get("name"),
        "ema_decay": "no average" if recipe.get("ema_decay") is None else "an average",
        "strategy": SHARDS if sharded else "a whole model",
    }
