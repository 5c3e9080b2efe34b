"""Every rank logs to one folder, rank 0 elsewhere as well; they go on while the file that they are given is missing.

What else it is given are MLflow stores, to which rank 0 logs twenty steps at first.
"""

import os
import sys
import time
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

if __name__ == "__main__":
    go, rank = Path(sys.argv[1]), int(os.environ["RANK"])
    run = None
    if rank == 0:
        import mlflow
        import mlflow_stores
        import trackio
        import wandb

        store = mlflow.get_tracking_uri()
        mlflow_stores.log("/", sys.argv[2:])
        mlflow.set_tracking_uri(store)
        run = wandb.init(project="p")
        trackio.init(project="p")
        mlflow.start_run()
    step = 0
    with SummaryWriter("shared") as writer:
        while step < 100 or not go.exists():
            writer.add_scalar("loss", rank * 1e6 + step, step)
            writer.flush()
            if run is not None:
                run.log({"wb": step})
                trackio.log({"tr": step}, step=step)
                mlflow.log_metric("ml", step, step=step)
            step += 1
            time.sleep(0.05)
    if run is not None:
        run.finish()
        trackio.finish()
        mlflow.end_run()
    Path(f"steps-{rank}").write_text(str(step))
