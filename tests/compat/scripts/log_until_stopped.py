"""Logs five steps by four trackers and waits to be stopped; where it has done so before, five more to the end."""

import time
from pathlib import Path

import mlflow
import trackio
import wandb
from torch.utils.tensorboard import SummaryWriter

if __name__ == "__main__":
    seen = Path("seen")
    start = 5 if seen.exists() else 0
    run = wandb.init(project="p")
    trackio.init(project="p")
    with mlflow.start_run() as made, SummaryWriter("runs") as writer:
        print(f"ids {run.id} {made.info.run_id}", flush=True)
        # Before the last point, upon which it is stopped.
        mlflow.log_text("kept", f"from-{start}.txt")
        seen.touch()
        for step in range(start, start + 5):
            writer.add_scalar("tb", step, step)
            mlflow.log_metric("ml", step, step=step)
            run.log({"wb": step}, step=step, commit=True)
            trackio.log({"tr": step}, step=step)
        writer.flush()
        while not start:
            time.sleep(0.1)
    run.finish()
    trackio.finish()
