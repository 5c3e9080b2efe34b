"""Gradients reduced to rank 0 and broadcast by hand: what it has in common with DDP is tested there."""

from pathlib import Path
from typing import Any

from tests.support import training


def test_all_gradients_pass_through_rank_0(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "model": {"name": "mlp", "hidden": [16]},
        "data": {"name": "synthetic", "samples": 24, "validation_samples": 7, "shape": [5]},
        "strategy": "broadcast",
        "epochs": 1,
        "batch_size": 4,
    }
    proof = training.train(given, 3, tmp_path / "run").proof["ranks"]
    (gradients,) = proof[0]["bucket_bytes"]
    assert [rank["role"] for rank in proof] == ["root", "leaf", "leaf"]
    assert [rank["bytes_sent_per_step"] for rank in proof] == [2 * gradients, gradients, gradients]
