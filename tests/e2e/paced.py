"""A training of two ranks that goes on slowly until the test opens its gate."""

from pathlib import Path
from typing import Any

from tests.e2e.conftest import SCRIPTS

#: Steps of an epoch, after which there is a checkpoint.
STEPS = 5
_BATCH = 8


def training(gate: Path, epochs: int = 20, **changes: Any) -> dict[str, Any]:
    """The spec; once the file `gate` is there, it runs as fast as it can. What it computes is always the same."""
    data = {"name": "custom", "target": "paced:points", "options": {"count": 2 * _BATCH * STEPS, "gate": str(gate)}}
    recipe = {
        "model": {"name": "mlp", "hidden": [32]},
        "data": data,
        "optim": {"name": "adam", "lr": 0.01},
        "schedule": "cosine",
        "strategy": "ddp",
        "epochs": epochs,
        "batch_size": _BATCH,
        "seed": 0,
        "log_every": 1,
    }
    kept = {"keep_last": 2, "keep_best": {"metric": "val/accuracy", "mode": "max"}}
    return {"live": str(SCRIPTS), "resources": {"gpus": 2}, "recipe": recipe, "checkpoint": kept, **changes}
