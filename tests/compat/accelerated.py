"""Trainings with Accelerate that follow `torchyard.attach`; run in the user's environment by `test_accelerate.py`.

``accelerated.py plain=STEP,… noisy=STEP,…`` prints of each kind of data the end of a run that is never stopped, and of
those that are stopped at each of the steps.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import torchyard


class Data(TensorDataset):
    """Some of it draws from the global random stream when it is loaded."""

    noisy = False

    def __getitem__(self, index: int) -> Any:
        inputs, targets = super().__getitem__(index)
        return inputs + (torch.randn(6) if self.noisy else 0), targets


def train(until: int = 0, restore: Path | None = None) -> Any:
    """The end of a run; none of one that is stopped after a step."""
    torch.manual_seed(3)
    chance = torch.Generator().manual_seed(1)
    data = Data(torch.randn(28, 6, generator=chance), torch.randn(28, 1, generator=chance))
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    accelerator = Accelerator(cpu=True)
    loader = DataLoader(data, batch_size=4, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    run = torchyard.attach(model=model, optimizer=optimizer, loader=loader, restore=restore)
    for _ in run.epochs(3):
        next(iter(loader))  # a look at the first batch, as in the official tutorial
        for inputs, targets in loader:
            loss = (model(inputs) - targets).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            run.report(loss=loss)
            if run.step == until:
                run.save()
                run.finish()
                return None
    weights = [value.tolist() for value in model.state_dict().values()]
    return {"weights": weights, "step": run.step, "inexact": run.inexact}


def ends(steps: list[int]) -> list[Any]:
    found = [train()]
    for step in steps:
        train(until=step)
        found.append(train(restore=Path(f"checkpoints/step-{step:09d}")))
    return found


def main(words: list[str]) -> None:
    found = {}
    for kind, _, steps in (word.partition("=") for word in words):
        Data.noisy = kind == "noisy"
        found[kind] = ends([int(step) for step in steps.split(",")])
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
