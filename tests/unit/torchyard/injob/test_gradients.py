"""A loop that reports more often than it steps loses no gradient when it is stopped."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from tests.support import attached
from torchyard.injob.gradients import Gradients


def training(restore: Path | None = None) -> attached.Training:
    torch.manual_seed(5)
    loader = DataLoader(attached.Seen(), batch_size=4, shuffle=True)
    return attached.Training(loader=loader, each_batch=True, restore=restore)


def test_a_loop_that_reports_each_batch_goes_on_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = training().train()
    assert whole.run.step == 22
    for step in range(1, whole.run.step):
        resumed = training(training().train(until=step).saved(tmp_path)).train()
        assert attached.same(resumed.weights(), whole.weights()), step
        assert resumed.run.inexact is None


@pytest.fixture
def model() -> nn.Linear:
    return nn.Linear(2, 1)


def test_only_gradients_that_wait_for_a_step_are_kept(model: nn.Linear) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gradients = Gradients([optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1)])
    assert gradients.state() == [[]]
    for number in range(1, 5):
        model(torch.ones(1, 2)).sum().backward()
        if number % 2 == 0:
            optimizer.step()
        gradients.reported()
        (kept,) = gradients.state()
        assert len(kept) == (0 if number % 2 == 0 else 2), number
    model(torch.ones(1, 2)).sum().backward()
    gradients.reported()
    optimizer.step()  # of the last batches of an epoch, after its loop
    assert gradients.state() == [[]]


def test_gradients_come_back_where_they_were(model: nn.Linear) -> None:
    model(torch.ones(1, 2)).sum().backward()
    gradients = Gradients([torch.optim.SGD(model.parameters(), lr=0.1)])
    gradients.reported()
    saved = gradients.state()
    other = nn.Linear(2, 1)
    Gradients([torch.optim.SGD(other.parameters(), lr=0.1)]).load(saved)
    for here, there in zip(other.parameters(), model.parameters(), strict=True):
        assert here.grad is not None
        assert there.grad is not None
        assert torch.equal(here.grad, there.grad)
        assert here.grad is not there.grad
