"""A run that is stopped at any step and resumed is the run that was never stopped."""

import random
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import torchyard

EPOCHS = 2
#: Batches of a step of the optimizer.
ACCUMULATED = 2
STEPS = 6


class Augmented(TensorDataset):
    """Its samples are changed at random, in whatever process loads them."""

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        inputs, targets = super().__getitem__(index)
        return inputs + torch.rand(6) + random.random(), targets * numpy.random.rand()


class Training:
    """A tiny one with all kinds of chance, up to a step or to its end."""

    def __init__(
        self, *, until: int | None = None, restore: Path | None = None, optimizer: str = "Adam", **options: Any
    ) -> None:
        chance = torch.Generator().manual_seed(1)
        data = Augmented(torch.randn(22, 6, generator=chance), torch.randn(22, 1, generator=chance))
        torch.manual_seed(3)
        random.seed(4)
        numpy.random.seed(5)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 1))
        momentum = {"momentum": 0.9} if optimizer == "SGD" else {}
        self.optimizer = getattr(torch.optim, optimizer)(self.model.parameters(), lr=0.01, **momentum)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.7)
        if options.pop("own_generator", False):
            options["generator"] = torch.Generator().manual_seed(5)
        self.loader = DataLoader(data, batch_size=4, shuffle=True, **options)
        self.run = torchyard.attach(
            model=self.model, optimizer=self.optimizer, loader=self.loader, schedule=self.schedule, restore=restore
        )
        if restore is not None:
            torch.rand(5)  # what a script draws before it trains changes nothing
        self._train(until)

    def _train(self, until: int | None) -> None:
        for _ in self.run.epochs(EPOCHS):
            for number, (inputs, targets) in enumerate(self.loader, start=self.run.batch + 1):
                loss = (self.model(inputs) - targets).square().mean()
                loss.backward()
                if number % ACCUMULATED == 0:
                    self._step(loss)
                    if self.run.step == until:
                        self.run.save()
                        self.run.finish()
                        return
            self.schedule.step()

    def _step(self, loss: Tensor) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.run.report(loss=loss)

    def weights(self) -> list[Tensor]:
        return list(self.model.state_dict().values())


WORKERS = {"num_workers": 2, "multiprocessing_context": "fork"}


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, range(1, STEPS)),
        ({"optimizer": "SGD", "own_generator": True}, range(1, STEPS)),
        ({**WORKERS}, (2, 4)),
        ({**WORKERS, "persistent_workers": True, "own_generator": True}, (1, 5)),
    ],
    ids=["shuffled", "generator", "workers", "persistent workers"],
)
def test_stopped_and_resumed_is_never_stopped(
    options: dict[str, Any], steps: range | tuple[int, ...], off_the_queue: Path
) -> None:
    whole = Training(**options)
    assert whole.run.step == STEPS
    for step in steps:
        Training(until=step, **options)
        resumed = Training(restore=off_the_queue / f"checkpoints/step-{step:09d}", **options)
        assert resumed.run.step == STEPS
        assert resumed.run.inexact is None
        assert all(map(torch.equal, whole.weights(), resumed.weights())), step
