import pytest
import torch
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, MultiStepLR, StepLR

from torchyard.recipe.schedule import Constant, Cosine, MultiStep, Step
from trainer.optimization.schedules import SCHEDULES, constant, cosine, multistep, step


def optimizer() -> SGD:
    return SGD([torch.zeros(1)], lr=1.0)


def library(scheduler: LRScheduler, epochs: int) -> list[float]:
    rates = []
    for _ in range(epochs):
        rates.append(scheduler.optimizer.param_groups[0]["lr"])
        scheduler.optimizer.step()
        scheduler.step()
    return rates


@pytest.mark.parametrize(
    ("factor", "scheduler"),
    [
        (step(Step(size=3, gamma=0.5)), lambda made: StepLR(made, 3, gamma=0.5)),
        (multistep(MultiStep(milestones=(2, 5))), lambda made: MultiStepLR(made, [2, 5])),
        (cosine(Cosine(floor=0.1)), lambda made: CosineAnnealingLR(made, 8, eta_min=0.1)),
    ],
)
def test_at_whole_epochs_it_is_the_librarys(factor, scheduler) -> None:  # type: ignore[no-untyped-def]
    expected = library(scheduler(optimizer()), 8)
    assert [factor(epoch, 8) for epoch in range(8)] == pytest.approx(expected)


def test_constant_and_warm_up() -> None:
    assert constant(Constant())(3.7, 5) == 1
    warm = cosine(Cosine(warmup=2))
    assert [warm(progress, 6) for progress in (0, 1, 2, 4, 6)] == pytest.approx([0, 0.5, 1, 0.5, 0])


def test_every_schedule_may_warm_up() -> None:
    warm = step(Step(size=4, gamma=0.5, warmup=2))
    assert [warm(progress, 8) for progress in (0, 1, 2, 3, 4)] == pytest.approx([0, 0.5, 1, 1, 0.5])
    assert set(SCHEDULES) == {"constant", "step", "multistep", "cosine"}
