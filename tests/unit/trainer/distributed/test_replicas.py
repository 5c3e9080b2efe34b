"""Scatter, replicate, parallel apply and gather, on logical devices."""

import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from trainer.distributed.replicas import Replicas, portions

CPU = torch.device("cpu")


def replicas(model: nn.Module, weights: list[int]) -> Replicas:
    return Replicas(model, [CPU] * len(weights), weights)


@pytest.mark.parametrize(
    ("samples", "weights", "expected"),
    [
        (8, [2, 3, 3], [2, 3, 3]),
        (5, [2, 3, 3], [1, 2, 2]),
        (3, [2, 3, 3], [1, 1, 1]),
        (1, [2, 3, 3], [1, 0, 0]),
        (7, [1, 1, 1], [2, 3, 2]),
        (2, [1, 50], [1, 1]),
        (11, [1], [11]),
    ],
)
def test_portions(samples: int, weights: list[int], expected: list[int]) -> None:
    assert portions(samples, weights) == expected


def test_portions_deal_every_sample() -> None:
    for samples in range(1, 60):
        for weights in ([2, 3, 3], [1, 4], [7, 1, 1, 1]):
            dealt = portions(samples, weights)
            assert sum(dealt) == samples
            assert min(dealt) >= 0
            assert dealt[0] >= 1


class Tied(nn.Module):
    """A weight that is used twice, one that is frozen, and a model computed anew in backward."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.list = nn.ParameterList([nn.Parameter(torch.ones(4))])

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = checkpoint(self._inner, inputs, use_reentrant=False)
        return self.second(self.frozen(hidden)) * self.list[0]

    def _inner(self, inputs: Tensor) -> Tensor:
        return torch.tanh(self.first(inputs))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.GRU(4, 3, batch_first=True)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.cells(inputs.unsqueeze(1))[0].squeeze(1)


@pytest.mark.parametrize(
    "make",
    [lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), Tied, Recurrent],
    ids=["mlp", "tied", "recurrent"],
)
def test_outputs_and_gradients_are_those_of_the_whole_batch(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    model, inputs = make(), torch.randn(8, 4)
    alone = model(inputs)
    alone.square().sum().backward()
    expected = [None if parameter.grad is None else parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    for _ in range(2):  # the second pass fills the same copies
        outputs = replicas(model, [2, 3, 3])(inputs)
    torch.testing.assert_close(outputs, alone)
    outputs.square().sum().backward()
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_buffers_stay_as_the_first_replica_leaves_them() -> None:
    """As torch.nn.DataParallel documents it: updates by the others are lost."""
    inputs = torch.arange(16.0).view(8, 2)
    expected = nn.BatchNorm1d(2)
    expected(inputs[:2])
    norm = nn.BatchNorm1d(2)
    replicas(norm, [2, 3, 3])(inputs)
    for name, buffer in norm.named_buffers():
        assert torch.equal(buffer, expected.get_buffer(name)), name


def test_mode_and_frozen_layers_are_those_of_the_model() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3))
    model[1].eval()
    parallel = replicas(model, [1, 1])
    assert (parallel(torch.ones(100, 3)) == 0).any()
    assert torch.equal(model[1].running_mean, torch.zeros(3))  # type: ignore[arg-type]
    model.eval()
    torch.testing.assert_close(parallel(torch.ones(4, 3)), model(torch.ones(4, 3)))


def test_replicas_of_one_device_draw_different_masks_in_one_order() -> None:
    """Commonly taught wrong: one seed everywhere gives every replica the same dropout."""
    parallel = replicas(nn.Dropout(0.5), [1, 1])
    torch.manual_seed(3)
    first = parallel(torch.ones(2, 50))
    assert not torch.equal(first[0], first[1])
    torch.manual_seed(3)
    assert torch.equal(first, parallel(torch.ones(2, 50)))


class Seen(nn.Module):
    """Answers a mapping, and notes under which modes it ran."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.modes: list[tuple[bool, torch.dtype, str]] = []

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        outputs = self.layer(inputs)
        self.modes.append((torch.is_grad_enabled(), outputs.dtype, threading.current_thread().name))
        return {"out": outputs, "twice": 2 * outputs}


def test_modes_are_carried_into_the_threads_and_mappings_are_gathered() -> None:
    model = Seen()
    parallel = Replicas(model, [CPU, CPU], [1, 1])
    parallel.copies[0].module.modes = model.modes  # type: ignore[assignment]
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = parallel(torch.ones(3, 2))
    assert outputs["out"].shape == outputs["twice"].shape == (3, 2)
    assert [mode[:2] for mode in model.modes] == [(False, torch.bfloat16)] * 2
    assert len({mode[2] for mode in model.modes}) == 1
    parallel(torch.ones(3, 2))
    assert [mode[:2] for mode in model.modes[2:]] == [(True, torch.float32)] * 2


def test_losses_are_gathered_as_a_vector() -> None:
    model = nn.Linear(3, 2)
    inputs, targets = torch.randn(8, 3), torch.randint(2, (8,))

    def loss(replica: nn.Module, samples: Tensor, classes: Tensor) -> Tensor:
        return functional.cross_entropy(replica(samples), classes, reduction="sum")

    parallel = replicas(model, [2, 3, 3])
    losses = parallel.gather(parallel.each(loss, inputs, targets))
    assert losses.shape == (3,)
    torch.testing.assert_close(losses.sum(), loss(model, inputs, targets))


def test_what_moves_is_counted() -> None:
    model = nn.Linear(3, 2)
    parallel = replicas(model, [1, 2])
    parallel(torch.ones(3, 3)).sum().backward()
    parameters, samples, outputs = 4 * 8, 4 * 2 * 3, 4 * 2 * 2
    assert parallel.moved() == 2 * parameters + samples + 2 * outputs  # gradients take the same way back
    assert parallel.moved() == 0
    model.eval()
    parallel(torch.ones(3, 3))
    assert parallel.moved() == 0


def test_copies_take_no_memory_until_they_are_filled() -> None:
    model = nn.Linear(3, 2)
    parallel = replicas(model, [1, 1])
    assert parallel.copies[0].held() == []
    parallel(torch.ones(2, 3))
    assert [each.shape for each in parallel.copies[0].held()] == [(2, 3), (2,)]
    assert list(parallel.copies[0].module.parameters()) == []
    assert [name for name, _ in parallel.named_parameters()] == ["model.weight", "model.bias"]


def test_a_failure_in_a_replica_is_raised() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        replicas(nn.Linear(3, 2), [1, 1])(torch.ones(2, 5))
