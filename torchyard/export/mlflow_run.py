"""Run by the user's own Python: rows of CSV from standard input into a new run of an MLflow server.

Its argument is a JSON object: `uri` (empty: as the environment says), `experiment`, `name`, `tags`, `params` and
`status`. It prints the run's id.
"""

import csv
import json
import sys
from itertools import islice

#: Points that the server takes at once.
BATCH = 1000

if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its modules are no packages of the user's
    import mlflow
    from mlflow.entities import Metric

    about = json.loads(sys.argv[1])
    if about["uri"]:
        mlflow.set_tracking_uri(about["uri"])
    client = mlflow.MlflowClient()
    experiment = mlflow.set_experiment(about["experiment"]).experiment_id
    run = client.create_run(experiment, run_name=about["name"], tags=about["tags"])
    for key, value in about["params"].items():
        client.log_param(run.info.run_id, key, value)
    rows = csv.DictReader(sys.stdin)
    while some := list(islice(rows, BATCH)):
        client.log_batch(
            run.info.run_id,
            metrics=[
                Metric(
                    row["name"] if row["rank"] == "0" else f"{row['name']}/rank {row['rank']}",
                    float(row["value"]),
                    int(float(row["time"]) * 1000),
                    int(row["step"]),
                )
                for row in some
            ],
        )
    client.set_terminated(run.info.run_id, about["status"])
    sys.stdout.write(run.info.run_id)
