"""DataParallel: one process, a replica on each of its devices (`trainer.distributed.replicas` has the details)."""

from typing import Any

import torch
from torch import Tensor, nn

from torchyard.recipe.strategies import Dp
from trainer import randomness
from trainer.data.loading import Batch
from trainer.data.sampler import BatchShares
from trainer.distributed.replicas import Replicas
from trainer.distributed.world import World
from trainer.strategies.base import Strategy, TrainingTask, placed


class DpStrategy(Strategy):
    """One batch for all devices, dealt to them; parameters and optimizer are on the first.

    With `first_device_batch` that device, which holds more, gets fewer samples ("balanced" DataParallel). With
    `loss_in_model` each replica computes the loss of its own samples, so that outputs stay where they are, and a
    vector of one loss for each replica is gathered. These are sums over samples, not means: the mean of the replicas'
    means is biased when their shares differ.
    """

    options: Dp
    module: Replicas

    def __init__(self, options: Dp, world: World) -> None:
        super().__init__(options, world)
        #: Distinct deals that training has seen: samples of each replica in a pass, and in a step.
        self._deals: dict[str, list[list[int]]] = {"pass": [], "step": []}

    @property
    def shares(self) -> BatchShares:
        return BatchShares()

    def pass_size(self, batch_size: int) -> int:
        others = len(self.world.devices) - 1
        return (self.options.first_device_batch or batch_size) + batch_size * others

    def prepare(self, model: nn.Module, task: TrainingTask) -> None:
        self._weights = self._shares_of(task.share_size)
        super().prepare(model, task)

    def _shares_of(self, whole: int) -> list[int]:
        """Weight of each replica."""
        first, others = self.options.first_device_batch, len(self.world.devices) - 1
        if first is None or not others:
            return [1] * (others + 1)
        return [first, *[(whole - first) // others] * others]

    def seed(self, seed: int) -> None:
        super().seed(seed)
        # torch.manual_seed gives all GPUs one stream: their replicas would draw the same dropout masks.
        for number, device in enumerate(self.streams.devices):
            with torch.cuda.device(device):
                torch.cuda.manual_seed(randomness.derive(seed, "replica", number))

    def wrap(self, model: nn.Module) -> nn.Module:
        return Replicas(model.to(self.world.device), self.world.devices, self._weights)

    def pass_loss(self, batch: Batch) -> Tensor:
        if not self.options.loss_in_model:
            return super().pass_loss(batch)
        assert batch.inputs is not None
        assert batch.targets is not None
        losses: Tensor = self.module.gather(self.module.each(self._loss_of, batch.inputs, batch.targets))
        return losses.sum()

    def _loss_of(self, replica: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return self.task.objective.loss(replica(inputs), targets)

    def update(self, rate: float, *, measure: bool) -> Tensor | None:
        self._note()
        norm = super().update(rate, measure=measure)
        self.bytes_sent += self.module.moved()
        return norm

    def _note(self) -> None:
        passes, self.module.step = self.module.step, []
        whole = [sum(sizes) for sizes in zip(*passes, strict=True)]
        for kind, deals in (("pass", passes), ("step", [whole])):
            seen = self._deals[kind]
            seen.extend(deal for place, deal in enumerate(deals) if deal not in [*seen, *deals[:place]])

    @torch.no_grad()
    def predict(self, inputs: Tensor | None) -> Any:
        if inputs is None:
            return None
        with self.task.numerics.autocast():
            return self.module(inputs)

    def called(self) -> list[nn.Module]:
        return [self.model, *(each.module for each in self.module.copies)]

    def proof(self) -> dict[str, Any]:
        return {
            **super().proof(),
            "replicas": len(self.world.devices),
            "replica_bytes": [placed(each.held()) for each in self.module.copies],
            "deals": self._deals,
        }
