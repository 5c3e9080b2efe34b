"""Logs twenty steps by two trackers, from the first one at each start, and waits for the file that it is given."""

import sys
import time
from pathlib import Path

import wandb
from tensorboard.summary import Writer

if __name__ == "__main__":
    go = Path(sys.argv[1])
    run = wandb.init(project="p")
    writer = Writer("runs")  # TensorBoard's own, without torch
    print(f"id {run.id}", flush=True)
    for step in range(20):
        writer.add_scalar("tb", step, step)
        run.log({"wb": step}, step=step, commit=True)
    writer.flush()
    while not go.exists():
        time.sleep(0.1)
    writer.close()
    run.finish()
