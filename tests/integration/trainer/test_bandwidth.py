"""Ranks that say they are on two nodes measure what lies between them."""

from pathlib import Path
from typing import Any

from tests.support import training
from torchyard.network import speed
from trainer.distributed.bandwidth import advice

RECIPE: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [256, 256]},
    "data": {"name": "synthetic", "samples": 40, "validation_samples": 4, "shape": [5]},
    "epochs": 1,
    "batch_size": 2,
    "log_every": 5,
}


def test_a_slow_network_is_worth_a_word_and_a_quick_one_is_not() -> None:
    told = advice(rate=100e6, sent=40e6, step_time=0.5, nodes=2)
    assert told is not None
    assert "2 nodes exchange 100 MB/s: the 40.0 MB of each step take about 80% of its 500 ms" in told
    assert advice(rate=10e9, sent=40e6, step_time=0.5, nodes=2) is None


def test_ranks_on_two_nodes_train_as_on_one(tmp_path: Path) -> None:
    one = training.train(RECIPE, 2, tmp_path / "one")
    two = training.train(RECIPE, 2, tmp_path / "two", environment={"LOCAL_WORLD_SIZE": "1"})
    assert two.losses() == one.losses()
    # Measured with the first report, and never again.
    (rate,) = two.attempt.series(speed.METRIC).items()
    assert rate[0] == 5
    assert rate[1] > 0
    assert not one.attempt.series(speed.METRIC)
