"""Logs to the MLflow stores that it is given, one run in each, until the file that it is given is there."""

import sys
import time
from pathlib import Path

import mlflow


def log(go, stores):
    """The number of steps in each store."""
    steps = []
    for number, store in enumerate(stores):
        mlflow.set_tracking_uri(store)
        with mlflow.start_run():
            step = 0
            while step < 20 or not Path(go).exists():
                mlflow.log_metric(f"ml-{number}", step, step=step)
                step += 1
                time.sleep(0.01)
        steps.append(step)
    return steps


if __name__ == "__main__":
    print("steps", *log(sys.argv[1], sys.argv[2:]))
