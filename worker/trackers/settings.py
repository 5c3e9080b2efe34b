"""Environment of a job's trackers: where the job says nothing, they write where the node reads."""

from collections.abc import Mapping, Set
from pathlib import Path

from torchyard.injob import layout
from torchyard.spec import JobSpec, Tracker
from worker.attempts.folder import AttemptFolder


def environment(
    folder: AttemptFolder, spec: JobSpec, own: Mapping[str, str], runs: Mapping[str, str]
) -> dict[str, str]:
    """Variables for the trackers that are read; none that the spec or the node's environment sets is replaced.

    `runs` has the only run that earlier attempts made, by tracker: the clients go on with it.
    """
    given = own.keys() | spec.env.keys() | set(spec.secrets)
    made = {layout.READ_TRACKERS: ",".join(spec.read_trackers)} if spec.read_trackers else dict[str, str]()
    if Tracker.MLFLOW in spec.read_trackers and "MLFLOW_TRACKING_URI" not in given:
        made |= _mlflow(folder.at(layout.MLFLOW_STORE), runs.get(Tracker.MLFLOW))
    if Tracker.TRACKIO in spec.read_trackers:
        made["TRACKIO_DIR"] = str(folder.at(layout.TRACKIO_STORE))
    if Tracker.WANDB in spec.read_trackers:
        made |= _wandb(runs.get(Tracker.WANDB), given)
    return {name: value for name, value in made.items() if name not in given}


def _mlflow(store: Path, run: str | None) -> dict[str, str]:
    """A file store: MLflow's own default is a database, and it asks to be told that files are meant."""
    made = {"MLFLOW_TRACKING_URI": store.as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    # A run that is not in the store, as when the attempt before has left nothing, would end the job.
    if run is not None and any(store.glob(f"*/{run}/meta.yaml")):
        made["MLFLOW_RUN_ID"] = run
    return made


def _wandb(run: str | None, given: Set[str]) -> dict[str, str]:
    made = {"WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL": "1"}
    if run is not None and not {"WANDB_RUN_ID", "WANDB_RESUME"} & given:
        made |= {"WANDB_RUN_ID": run, "WANDB_RESUME": "allow"}
    return made
