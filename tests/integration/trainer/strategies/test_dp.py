"""DataParallel in one process, on logical devices: shares, losses, bytes, and the same weights as one replica."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import ranks, training
from torchyard.recipe import Recipe
from torchyard.recipe.strategies import Dp
from trainer.distributed.process_group import joined
from trainer.distributed.world import World
from trainer.exceptions import RecipeError
from trainer.loop.components import build
from trainer.loop.training import Training
from trainer.strategies.dp import DpStrategy

BALANCED = {"name": "dp", "devices": 3, "first_device_batch": 2}


def recipe(strategy: Any, **changed: Any) -> dict[str, Any]:
    return training.recipe(strategy, **{"batch_size": 3, **changed})


@pytest.mark.parametrize("loss_in_model", [False, True], ids=["outputs", "losses"])
def test_shares_of_any_size_train_as_one_process(loss_in_model: bool, tmp_path: Path) -> None:
    """2 + 3 + 3 samples a pass are 4 + 6 + 6 a step with two passes; the last pass of an epoch is dealt alike.

    Commonly taught wrong: the mean of the replicas' mean losses, which is biased as soon as shares differ, in the last
    batch and under accumulation too.
    """
    given = recipe({**BALANCED, "loss_in_model": loss_in_model}, accumulate=2, activation_checkpointing=loss_in_model)
    trained = training.train(given, 1, tmp_path / "run")
    weights, losses, accuracies = training.plainly(given, 16)
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
    assert list(trained.whole) == list(weights)  # without "module."
    assert trained.losses() == pytest.approx(losses, rel=1e-4)
    assert list(trained.attempt.series("train/accuracy").values()) == pytest.approx(accuracies)

    scores, last = training.scores(given, trained.whole), len(losses)
    for name, value in scores.items():
        assert trained.attempt.series(f"val/{name}")[last] == pytest.approx(value, rel=1e-6)

    (proof,) = trained.proof["ranks"]
    assert proof["replicas"] == 3
    assert proof["deals"] == {"pass": [[2, 3, 3], [1, 1, 1]], "step": [[4, 6, 6], [3, 4, 4]]}
    whole = sum(value.nbytes for value in weights.values())
    assert proof["parameter_bytes"] == {"cpu": whole}
    assert proof["replica_bytes"] == [{"cpu": whole}] * 2
    # Two copies go out and their gradients come back in each of the passes, two a step but for the last of an epoch.
    passes, steps = 2 * 12, 2 * 6
    assert proof["bytes_sent_per_step"] > 4 * whole * passes / steps


def sent(given: dict[str, Any]) -> int:
    """Bytes that go between replicas in one step."""
    parsed = Recipe.model_validate(given)
    with joined(parsed.strategy) as world:
        run = Training(build(parsed, world))
        strategy = run.components.strategy
        for batch in run.batches(0):
            strategy.backward(batch)
            if batch.last:
                strategy.update(0.1, measure=False)
                break
        return strategy.bytes_sent


def test_a_loss_inside_the_model_leaves_the_outputs_where_they_are() -> None:
    """Outputs and their gradients stay; targets go out instead, and two losses of one number come back."""
    ((outputs,), (losses,)) = (
        ranks.run(sent, 1, recipe({**BALANCED, "loss_in_model": each})) for each in (False, True)
    )
    samples, classes, replicas = 3 + 3, 10, 2
    assert outputs - losses == samples * 2 * classes * 4 - samples * 8 - replicas * 2 * 4


def test_even_shares_and_clipping(tmp_path: Path) -> None:
    given = recipe({"name": "dp", "devices": 2}, clip_norm=0.3, ema_decay=0.9, epochs=1)
    trained = training.train(given, 1, tmp_path / "dp")
    plain = training.train({**given, "strategy": "single", "batch_size": 6}, 1, tmp_path / "single")
    torch.testing.assert_close(trained.whole, plain.whole, rtol=1e-3, atol=1e-5)
    for name in ("gradient_norm", "train/loss", "val/loss", "val/accuracy"):
        here, there = trained.attempt.series(name), plain.attempt.series(name)
        assert list(here.values()) == pytest.approx(list(there.values()), rel=1e-3), name


def test_a_run_resumed_after_any_step_is_bitwise_the_same(tmp_path: Path) -> None:
    """Replicas on the CPU run one after the other, so that dropout repeats itself bit by bit."""
    model = {"name": "mlp", "hidden": [16], "dropout": 0.5}
    given = recipe(BALANCED, model=model, optim={"name": "adam", "lr": 0.01}, precision="bf16")
    whole = training.train(given, 1, tmp_path / "whole", checkpoint_every=1e-9)
    for step in (1, 11, 12):
        checkpoint = whole.attempt.checkpoints()[step - 1]
        resumed = training.train(given, 1, tmp_path / f"from-{step}", restore=checkpoint)
        assert training.equal(resumed.whole, whole.whole), step
        assert resumed.losses() == whole.losses()[step:]


def test_a_run_goes_on_with_fewer_devices_and_with_more(tmp_path: Path) -> None:
    """At one effective batch and without dropout the weights are those of a run that kept its devices."""
    given = {**recipe("single"), "global_batch_size": 8}
    del given["batch_size"]
    single = training.train(given, 1, tmp_path / "single", checkpoint_every=1e-9)
    more = {**given, "strategy": {"name": "dp", "devices": 3}}
    dealt = training.train(more, 1, tmp_path / "more", restore=single.attempt.checkpoints()[3], checkpoint_every=1e-9)
    torch.testing.assert_close(dealt.whole, single.whole, **training.CLOSE)
    fewer = training.train(given, 1, tmp_path / "fewer", restore=dealt.attempt.checkpoints()[3])
    torch.testing.assert_close(fewer.whole, single.whole, **training.CLOSE)


def test_devices_of_the_job_are_the_replicas(tmp_path: Path) -> None:
    given = recipe("dp", epochs=1)
    trained = training.train(given, 1, tmp_path / "run", environment={"TORCHYARD_DEVICES": "4"})
    (proof,) = trained.proof["ranks"]
    assert proof["replicas"] == 4
    assert proof["deals"]["pass"][0] == [3, 3, 3, 3]


def test_it_refuses_company() -> None:
    with pytest.raises(RecipeError, match="dp is one process, but 2 were started: take strategy: ddp"):
        DpStrategy(Dp(), World(rank=0, local_rank=0, size=2, devices=(torch.device("cpu"),) * 2))
