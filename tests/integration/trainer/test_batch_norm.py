"""Statistics over all ranks: outputs, gradients and running statistics are those of one process with all samples."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from tests.support import ranks
from trainer.distributed.process_group import joined
from trainer.numerics.sync_batch_norm import synchronised

SIZES = (1, 4, 2)
LAYERS: list[_BatchNorm] = [
    nn.BatchNorm1d(3),
    nn.BatchNorm2d(3, affine=False, eps=0.1),
    nn.BatchNorm3d(3, momentum=None),
    nn.BatchNorm2d(3, track_running_stats=False),
]


def passes(layer: nn.Module, batches: list[Tensor]) -> dict[str, list[Tensor]]:
    """Two training passes and an evaluation: outputs, gradients of the inputs and of what is trained."""
    seen: dict[str, list[Tensor]] = {"outputs": [], "inputs": []}
    for number, batch in enumerate(batches):
        layer.train(number < len(batches) - 1)
        inputs = batch.clone().requires_grad_()
        outputs = layer(inputs)
        outputs.pow(3).sum().backward()  # a plain sum has no gradient here
        assert inputs.grad is not None
        seen["outputs"].append(outputs.detach())
        seen["inputs"].append(inputs.grad)
    seen["trained"] = [parameter.grad for parameter in layer.parameters() if parameter.grad is not None]
    seen["buffers"] = [buffer.double() for buffer in layer.buffers()]
    return seen


def batches(layer: _BatchNorm) -> list[Tensor]:
    """With a mean that is large beside the deviation, where sums of squares lose their digits."""
    shapes: dict[type, tuple[int, ...]] = {nn.BatchNorm1d: (), nn.BatchNorm2d: (2, 3), nn.BatchNorm3d: (2, 1, 3)}
    shape = shapes[type(layer)]
    generator = torch.Generator().manual_seed(3)
    return [100 + torch.randn((sum(SIZES), 3, *shape), generator=generator) for _ in range(3)]


def over_ranks() -> list[dict[str, list[Tensor]]]:
    with joined() as world:
        results = []
        for layer in LAYERS:
            own = [torch.split(batch, SIZES)[world.rank] for batch in batches(layer)]
            results.append(passes(synchronised(copy.deepcopy(layer), world.device), own))
        return results


def test_ranks_compute_what_one_process_would() -> None:
    by_rank = ranks.run(over_ranks, len(SIZES))
    for number, layer in enumerate(LAYERS):
        whole = passes(copy.deepcopy(layer), batches(layer))
        components = [results[number] for results in by_rank]
        # Without running statistics an evaluation takes its own batch's, on every rank those of that rank, as PyTorch.
        compared = 2 if not list(layer.buffers()) else 3
        near: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-4}
        for name in ("outputs", "inputs"):
            joined_up = [torch.cat([part[name][each] for part in components]) for each in range(compared)]
            torch.testing.assert_close(joined_up, whole[name][:compared], **near)
        for part in components:
            torch.testing.assert_close(part["buffers"], whole["buffers"], **near)
        if compared == 3:
            added = [
                torch.stack(gradients).sum(0)
                for gradients in zip(*(part["trained"] for part in components), strict=True)
            ]
            torch.testing.assert_close(added, whole["trained"], rtol=1e-4, atol=1e-3)


def alike() -> tuple[str, torch.dtype, list[str]]:
    with joined() as world:
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        names = list(model.state_dict())
        synchronised(model, world.device)
        assert list(model.state_dict()) == names
        with torch.autocast("cpu", torch.bfloat16):
            kind = model(torch.randn(2, 4)).dtype
        with pytest.raises(ValueError, match="expected 2D or 3D input") as error:
            model[1](torch.randn(2, 3, 4, 5))
        return str(error.value), kind, [type(each).__name__ for each in model]


def test_it_is_the_same_layer_in_all_else() -> None:
    told, kind, names = ranks.run(alike, 1)[0]
    assert "got 4D" in told
    assert kind == torch.bfloat16
    assert names == ["Linear", "SynchronisedBatchNorm1d"]


def lonely() -> str:
    with joined() as world, pytest.raises(ValueError, match="more than 1 value") as error:
        synchronised(nn.BatchNorm1d(3), world.device)(torch.randn(1, 3))
    return str(error.value)


def test_a_single_value_has_no_deviation() -> None:
    (told,) = ranks.run(lonely, 1)
    assert told == "Expected more than 1 value per channel when training, over all ranks, got (1, 3) here"
