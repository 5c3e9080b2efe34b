"""Logs by the trackers that it is given, as their users do, and keeps what it logged beside, for the test to compare.

Only those are loaded, which takes up to three seconds each.
"""

import json
import math
import sys
from pathlib import Path

MANY = 200
STEPS = [*range(0, 1000, 10)]
ODD = [math.nan, math.inf, -math.inf, 1e300, 0.0, 1e-30]
logged: dict[str, dict[str, list[tuple[int, float]]]] = {}


def note(tracker: str, name: str, step: int, value: float) -> float:
    logged.setdefault(tracker, {}).setdefault(name, []).append((step, value))
    return value


def by_tensorboard() -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter("runs/train") as writer:
        for step in range(10_000):
            writer.add_scalar("tb/loss", note("tensorboard", "tb/loss", step, 1 / (step + 1)), step)
        for tag in range(MANY):
            writer.add_scalar(f"tb/many/{tag}", note("tensorboard", f"tb/many/{tag}", 7, tag / 3), 7)
        for step, value in enumerate(ODD):
            writer.add_scalar("tb/odd", note("tensorboard", "tb/odd", step, value), step)
        writer.add_scalar("tb/new", note("tensorboard", "tb/new", 3, 0.25), 3, new_style=True)
        writer.add_scalar(
            "tb/double", note("tensorboard", "tb/double", 3, 0.1), 3, new_style=True, double_precision=True
        )
        writer.add_scalar("tb/no step", note("tensorboard", "tb/no step", 0, 4.0))
        writer.add_text("tb/text", "no number")
    with SummaryWriter("runs/val") as writer:
        writer.add_scalar("tb/loss", note("tensorboard", "val/tb/loss", 9, 2.0), 9)


def by_mlflow() -> None:
    import mlflow

    with mlflow.start_run():
        mlflow.log_param("lr", 0.1)
        for step in STEPS:
            mlflow.log_metrics({"ml/loss": note("mlflow", "ml/loss", step, 1 / (step + 3))}, step=step)
        for step, value in enumerate(ODD):
            mlflow.log_metric("ml/odd", note("mlflow", "ml/odd", step, value), step=step)
        mlflow.log_metric("ml_no_step", note("mlflow", "ml_no_step", 0, 4.0))


def by_wandb() -> None:
    import wandb

    run = wandb.init(project="p", config={"lr": 0.1})
    for step in range(1000):
        run.log({"wb/loss": note("wandb", "wb/loss", step, 1 / (step + 3)), "wb/text": "no number"})
    for place, value in enumerate(ODD):
        run.log({"wb/odd": note("wandb", "wb/odd", 2000 + place, value)}, step=2000 + place)
    run.log({f"wb/many/{tag}": note("wandb", f"wb/many/{tag}", 3000, tag / 3) for tag in range(MANY)}, step=3000)
    run.log({"wb": {"nested": note("wandb", "wb.nested", 3001, 5.0)}}, step=3001)
    run.finish()


def by_trackio() -> None:
    import trackio

    trackio.init(project="p")
    for step in STEPS:
        trackio.log({"tr/loss": note("trackio", "tr/loss", step, 1 / (step + 3)), "tr/text": "no number"}, step=step)
    for place, value in enumerate(ODD):
        trackio.log({"tr/odd": note("trackio", "tr/odd", 2000 + place, value)}, step=2000 + place)
    trackio.finish()


if __name__ == "__main__":
    for name in sys.argv[2:]:
        globals()[f"by_{name}"]()
    with Path(sys.argv[1]).open("w") as file:
        json.dump(logged, file)
