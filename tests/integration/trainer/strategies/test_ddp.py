"""Options of DDP: each trains as it should, and sends what it says. Single ranks together: test_replicas_on_ranks."""

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.support import ranks, training
from torchyard.recipe import Recipe
from torchyard.recipe.strategies import Ddp
from trainer.distributed.process_group import joined
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.strategies.ddp import DdpStrategy

CPU = torch.device("cpu")


def recipe(strategy: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    model = {"name": "mlp", "hidden": [32, 24]}
    data = {"name": "synthetic", "samples": 47, "validation_samples": 7, "shape": [5]}
    optim = {"name": "sgd", "lr": 0.1}
    own = {"model": model, "data": data, "optim": optim, "batch_size": 4, **changed}
    return training.recipe({"name": "ddp", **(strategy or {})}, **own)


def sent(trained: training.Trained) -> list[int]:
    return [rank["bytes_sent_per_step"] for rank in trained.proof["ranks"]]


@pytest.mark.parametrize(
    ("options", "buckets"),
    [
        ({"find_unused_parameters": True}, 1),
        ({"static_graph": True}, 1),
        ({"gradient_as_bucket_view": True, "bucket_cap_mb": 0.001}, 3),
    ],
    ids=["find", "static", "view"],
)
def test_options_change_no_result(options: dict[str, Any], buckets: int, tmp_path: Path) -> None:
    given = recipe(strategy=options)
    trained = training.train(given, 2, tmp_path / "run")
    weights, _ = training.alone(given, 8)
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
    whole = sum(value.nbytes for value in weights.values())
    (laid_out,) = {tuple(rank["bucket_bytes"]) for rank in trained.proof["ranks"]}
    assert len(laid_out) == buckets
    assert sum(laid_out) == whole
    assert sent(trained) == [whole] * 2  # 2 (ranks - 1) / ranks of it


@pytest.mark.parametrize("hook", ["bf16", "fp16"])
def test_half_as_many_bytes_in_16_bits(hook: str, tmp_path: Path) -> None:
    """Gradients are rounded to 8 (bf16) or 11 bits, so that weights are only near those of fp32."""
    given = recipe(strategy={"hook": hook}, accumulate=2)
    trained = training.train(given, 2, tmp_path / "run")
    weights, losses = training.alone(given, 16)
    assert training.equal(*trained.own)
    torch.testing.assert_close(trained.whole, weights, rtol=0, atol=0.02)
    # What was rounded on the way shows: no other order of additions brings weights so far apart.
    assert not all(torch.allclose(trained.whole[name], value, **training.CLOSE) for name, value in weights.items())
    assert trained.losses() == pytest.approx(losses, rel=0.02)
    assert sent(trained) == [sum(value.nbytes for value in weights.values()) // 2] * 2


def test_powersgd_sends_less_and_resumes_with_what_it_left_out(tmp_path: Path) -> None:
    """After two uncompressed steps, each matrix travels as two narrow ones. Three ranks, three buckets."""
    options = {"hook": "powersgd", "powersgd_rank": 1, "powersgd_start": 2, "bucket_cap_mb": 0.001}
    given = recipe(strategy=options)
    whole = training.train(given, 3, tmp_path / "whole", checkpoint_every=1e-9)
    assert all(training.equal(own, whole.own[0]) for own in whole.own)
    assert whole.losses() == pytest.approx(training.alone(given, 12)[1], rel=0.15)

    matrices = [value for value in whole.whole.values() if value.dim() == 2]
    vectors = sum(value.nbytes for value in whole.whole.values() if value.dim() == 1)
    compressed = vectors + sum(4 * sum(value.shape) for value in matrices)
    plain = vectors + sum(value.nbytes for value in matrices)
    steps = len(whole.losses())
    expected = 2 * 2 * (2 * plain + (steps - 2) * compressed) / 3 / steps
    assert sent(whole) == pytest.approx([expected] * 3, abs=2)
    assert expected < plain

    checkpoint = whole.attempt.checkpoints()[4]
    resumed = training.train(given, 3, tmp_path / "resumed", restore=checkpoint)
    assert training.equal(resumed.whole, whole.whole)
    assert resumed.losses() == whole.losses()[5:]
    fewer = training.train(given, 2, tmp_path / "fewer", restore=checkpoint)
    assert training.equal(*fewer.own)


def test_one_device_in_a_process() -> None:
    """Commonly taught wrong: `device_ids=[0, 1]`, and `torch.nn.parallel.broadcast_buffers`."""
    with pytest.raises(RecipeError, match=r"one device in a process, not 2: .* dp .* model_parallel"):
        DdpStrategy(Ddp(), World(rank=0, local_rank=0, size=1, devices=(CPU, CPU)))
    assert ranks.run(refused, 1) == ["device_ids can only be None or contain a single element."]
    assert not hasattr(torch.nn.parallel, "broadcast_buffers")
    assert "broadcast_buffers" in inspect.signature(nn.parallel.DistributedDataParallel).parameters


def refused() -> str:
    with joined(), pytest.raises(ValueError, match="device_ids") as error:
        nn.parallel.DistributedDataParallel(nn.Linear(2, 2), device_ids=[0, 1])
    return str(error.value)


def sparse_gradient() -> bool:
    with joined() as world:
        model = nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Linear(4, 2))
        wrapped = DdpStrategy(Ddp(), world).wrap(model)
        for _ in range(2):
            wrapped(torch.tensor([world.rank, 2])).sum().backward()
        gradient = model[0].weight.grad
        assert isinstance(gradient, Tensor)
        return gradient.is_sparse


def test_embeddings_with_sparse_gradients() -> None:
    assert ranks.run(sparse_gradient, 2) == [True, True]


SEGMENTER: dict[str, Any] = {
    "model": {"name": "tiny_segmenter", "width": 4},
    "data": {"name": "synthetic_segmentation", "samples": 22, "validation_samples": 5, "size": 8},
    "epochs": 2,
}


@pytest.mark.parametrize("changed", [{}, {"activation_checkpointing": True}], ids=["plain", "recomputed"])
def test_sync_batch_norm_trains_as_one_process_on_the_whole_batch(changed: dict[str, Any], tmp_path: Path) -> None:
    """Statistics, running ones too, and gradients through them; the last step's shares differ in size."""
    given = recipe(strategy={"sync_batch_norm": True}, **SEGMENTER, **changed)
    trained = training.train(given, 3, tmp_path / "run")
    weights, losses = training.alone(given, 12)
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
    assert trained.losses() == pytest.approx(losses, rel=1e-4)
    assert all(training.equal(own, trained.own[0]) for own in trained.own)


def test_without_it_each_rank_normalises_by_its_own_samples(tmp_path: Path) -> None:
    given = recipe(**SEGMENTER)
    trained = training.train(given, 3, tmp_path / "run")
    weights, _ = training.alone(given, 12)
    name = "backbone.3.running_var"
    assert not torch.allclose(trained.whole[name], weights[name], rtol=1e-3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"strategy": {"name": "ddp", "static_graph": True}, "accumulate": 2}, "static_graph fails with accumulate"),
        ({"strategy": {"name": "ddp", "static_graph": True, "hook": "powersgd"}}, "powersgd cannot be resumed"),
        ({"strategy": {"name": "ddp", "hook": "powersgd"}, "precision": "fp16"}, "fp16 is not for .*powersgd"),
    ],
)
def test_options_that_do_not_go_together(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe.model_validate(given)
