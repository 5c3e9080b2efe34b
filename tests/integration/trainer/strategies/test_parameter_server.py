"""Workers and servers train what one process trains; asynchronously they train on stale parameters, and say so."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.support import ranks, training, wait
from torchyard.recipe import Recipe
from trainer.distributed.process_group import joined
from trainer.distributed.rendezvous import rendezvous_for
from trainer.loop.components import build
from trainer.loop.training import Training


def recipe(servers: int = 1, *, asynchronous: bool = False, **changed: Any) -> dict[str, Any]:
    strategy = {"name": "parameter_server", "servers": servers, "async": asynchronous}
    return training.recipe(strategy, **{"batch_size": 4, **changed})


@pytest.mark.parametrize(("workers", "servers", "accumulate"), [(2, 1, 1), (2, 2, 2), (3, 1, 2)])
def test_trains_what_one_process_trains(workers: int, servers: int, accumulate: int, tmp_path: Path) -> None:
    given = recipe(servers, accumulate=accumulate)
    trained = training.train(given, workers + servers, tmp_path / "run")
    weights, losses = training.alone(given, 4 * workers * accumulate)
    torch.testing.assert_close(trained.whole, weights, **training.CLOSE)
    assert trained.losses() == pytest.approx(losses, rel=1e-4)
    assert all(training.equal(own, trained.own[0]) for own in trained.own[:workers])
    for name, value in training.scores(given, trained.whole).items():
        assert trained.attempt.series(f"val/{name}")[len(losses)] == pytest.approx(value, rel=1e-6)

    whole = sum(value.nbytes for value in weights.values())
    workers_proof, servers_proof = trained.proof["ranks"][:workers], trained.proof["ranks"][workers:]
    for each in workers_proof:
        # A replica of the parameters, nothing of the optimizer's; all of it is sent and received in each step.
        assert (each["role"], each["parameter_bytes"], each["optimizer_bytes"]) == ("worker", {"cpu": whole}, 0)
        assert each["bytes_sent_per_step"] == whole
    for each in servers_proof:
        # Momentum is as large as the parameters that are held.
        assert (each["role"], each["parameter_bytes"]["cpu"]) == ("server", each["optimizer_bytes"])
        assert each["bytes_sent_per_step"] == workers * each["parameter_bytes"]["cpu"]
        assert each["updates"] == len(losses)
    assert sum(each["parameter_bytes"]["cpu"] for each in servers_proof) == whole
    assert sorted(name for each in servers_proof for name in each["parameters"]) == sorted(weights)


def normalised() -> nn.Module:
    """Batch normalisation, and a weight that is used twice."""
    layer = nn.Linear(5, 5)
    return nn.Sequential(layer, nn.BatchNorm1d(5), nn.ReLU(), layer, nn.Linear(5, 10))


def test_clipping_buffers_and_averages_are_those_of_ddp(tmp_path: Path) -> None:
    model = {"name": "custom", "target": f"{__name__}:normalised"}
    optim = {"name": "adam", "lr": 0.01}
    data = {**training.SYNTHETIC, "shape": [5]}
    given = recipe(2, model=model, data=data, optim=optim, batch_size=6, clip_norm=0.3, ema_decay=0.9, precision="bf16")
    trained = training.train(given, 4, tmp_path / "servers")
    other = training.train({**given, "strategy": "ddp"}, 2, tmp_path / "ddp")
    torch.testing.assert_close(trained.whole, other.whole, rtol=1e-3, atol=1e-5)
    assert training.equal(trained.own[0], trained.own[1])
    for name in ("gradient_norm", "train/loss", "val/loss", "val/accuracy"):
        here, there = trained.attempt.series(name), other.attempt.series(name)
        assert list(here.values()) == pytest.approx(list(there.values()), rel=1e-3), name
    assert max(trained.attempt.series("gradient_norm").values()) > 0.3


def resumable(servers: int) -> dict[str, Any]:
    """Eight steps in two epochs, with chance on every worker; wide enough that the order of additions shows."""
    model = {"name": "mlp", "hidden": [40, 30], "dropout": 0.5}
    data = {"name": "synthetic", "samples": 23, "validation_samples": 7, "shape": [5]}
    optim = {"name": "adam", "lr": 0.01}
    return recipe(servers, model=model, data=data, optim=optim, batch_size=3, ema_decay=0.9, clip_norm=1.0)


def test_a_run_resumed_after_any_step_is_bitwise_the_same(tmp_path: Path) -> None:
    given = resumable(servers=2)
    whole = training.train(given, 4, tmp_path / "whole", checkpoint_every=1e-9)
    checkpoints = whole.attempt.checkpoints()
    assert len(checkpoints) == 8
    for step in (1, 4, 6):  # the first, at the end of an epoch, in the middle of the next
        resumed = training.train(given, 4, tmp_path / f"from-{step}", restore=checkpoints[step - 1])
        assert all(training.equal(here, there) for here, there in zip(resumed.own, whole.own, strict=True)), step
        assert resumed.losses() == whole.losses()[step:]
        assert resumed.attempt.series("val/loss")[8] == whole.attempt.series("val/loss")[8]


def test_its_checkpoints_are_those_of_any_replica(tmp_path: Path) -> None:
    """From one process to three workers with two servers, to two workers with one, and back."""
    given = recipe(optim={"name": "adam", "lr": 0.01}, epochs=1, global_batch_size=12)
    del given["batch_size"]
    alone = {**given, "strategy": "single"}
    undisturbed = training.train(alone, 1, tmp_path / "undisturbed", checkpoint_every=1e-9)
    at = undisturbed.attempt.checkpoints()[1]
    for name, world, changed in (("3+2", 5, recipe(2)), ("2+1", 3, recipe(1)), ("single", 1, alone)):
        run = {**given, "strategy": changed["strategy"]}
        resumed = training.train(run, world, tmp_path / name, restore=at, checkpoint_every=1e-9)
        torch.testing.assert_close(resumed.whole, undisturbed.whole, **training.CLOSE)
        at = resumed.attempt.checkpoints()[1]


def test_asynchronous_training_learns_and_leaves_one_model(tmp_path: Path) -> None:
    """Two workers, two servers; what is evaluated and saved is what the servers hold, the same on all workers."""
    data = {"name": "synthetic", "samples": 211, "validation_samples": 37, "shape": [20], "noise": 0.1}
    model, optim = {"name": "mlp", "hidden": [32]}, {"name": "sgd", "lr": 0.1, "momentum": 0}
    given = recipe(2, asynchronous=True, model=model, data=data, optim=optim, clip_norm=5.0)
    trained = training.train(given, 4, tmp_path / "run", checkpoint_every=0.02)
    assert training.equal(trained.own[0], trained.own[1])
    steps = max(trained.attempt.series("train/loss"))
    scores = training.scores(given, trained.whole)
    assert scores["accuracy"] > 0.9
    for name, value in scores.items():
        assert trained.attempt.series(f"val/{name}")[steps] == pytest.approx(value, rel=1e-6)
    for server in trained.proof["ranks"][2:]:
        # Each of the two workers' gradients is an update of its own.
        assert server["updates"] == sum(server["updates_by_staleness"].values()) == 2 * steps
    assert trained.attempt.series("staleness/max").keys() == trained.attempt.series("train/loss").keys()


def hold_back(folder: str, given: dict[str, Any]) -> dict[str, Any]:
    """Worker 1 sends its first gradient when worker 0 has done four steps."""
    parsed = Recipe.model_validate(given)
    with joined(parsed.strategy) as world:
        components = build(parsed, world)
        original, done = components.strategy.update, 0

        def update(rate: float, *, measure: bool) -> Tensor | None:
            nonlocal done
            if world.rank == 1:
                wait.until(Path(folder, "ahead").exists, what="the fast worker")
            norm = original(rate, measure=measure)
            done += 1
            if world.rank == 0 and done == 4:
                Path(folder, "ahead").touch()
            return norm

        components.strategy.update = update  # type: ignore[method-assign]
        Training(components).run()
        return components.strategy.proof()


def test_a_slow_worker_sends_stale_gradients(tmp_path: Path) -> None:
    given = recipe(asynchronous=True, epochs=1, log_every=100)
    server = ranks.run(hold_back, 3, str(tmp_path), given)[2]
    by_staleness = {int(staleness): count for staleness, count in server["updates_by_staleness"].items()}
    assert max(by_staleness) >= 4
    assert by_staleness[0] >= 4


def lose_worker_1(folder: str, given: dict[str, Any]) -> None:
    parsed = Recipe.model_validate(given)
    ranks.meet(folder)
    with joined(parsed.strategy, rendezvous_for(parsed, os.environ)) as world:
        components = build(parsed, world)
        if world.rank == 1:
            components.strategy.update = die  # type: ignore[method-assign]
        Training(components).run()


def die(rate: float, *, measure: bool) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_lost_worker_ends_the_others(tmp_path: Path) -> None:
    """Within the time-out: a server that takes gradients from anybody cannot know earlier that one will not come."""
    with (
        ranks.started(lose_worker_1, 3, str(tmp_path / "together"), recipe(timeout=5)) as synchronous,
        ranks.started(lose_worker_1, 3, str(tmp_path / "apart"), recipe(asynchronous=True, timeout=5)) as asynchronous,
    ):
        for started in (synchronous, asynchronous):
            started.wait()
            assert [process.exitcode for process in started.processes] == [1, -signal.SIGKILL, 1]
            assert "no longer answers: it failed, was killed or hangs" in started.output(0)
            assert "PeerError: rank 1 no longer answers: it failed, was killed or hangs" in started.output(2)
