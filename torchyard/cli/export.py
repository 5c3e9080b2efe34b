"""``metrics --export``."""

import json
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from torchyard.exceptions import TorchYardError

if TYPE_CHECKING:
    from torchyard.api import Job
    from torchyard.client.client import Client


class ExportFormat(StrEnum):
    """Formats of exported metrics."""

    CSV = "csv"
    PARQUET = "parquet"
    TENSORBOARD = "tensorboard"
    MLFLOW = "mlflow"


def export(client: "Client", job: "Job", names: list[str], form: ExportFormat, to: str | None) -> str:
    """Write a job's points and return where they are. Raises TorchYardError with the mend."""
    try:
        return _WRITERS[form](client, job, names, to)
    except BrokenPipeError:
        raise  # the reader of standard output has gone
    except OSError as error:
        raise TorchYardError(f"{error.filename or to or 'export'}: {error.strerror or error}") from error


def _csv(client: "Client", job: "Job", names: list[str], to: str | None) -> str:
    from torchyard.export import rows

    if to == "-":
        rows.write_csv(rows.read(client, job.id, names), sys.stdout)
        return ""
    target = Path(to or f"job-{job.number}.csv")
    with target.open("a"):
        pass  # a file that may not be written is left as it is
    try:
        with target.open("w", newline="") as file:
            rows.write_csv(rows.read(client, job.id, names), file)
    except BaseException as error:
        if target.is_file():
            target.unlink()  # half a table looks like a whole one
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise
    return str(target)


def _parquet(client: "Client", job: "Job", names: list[str], to: str | None) -> str:
    from torchyard.export import own_python, rows

    target = Path(to or f"job-{job.number}.parquet").absolute()
    own_python.run(
        "parquet.py", [str(target)], "pyarrow", lambda file: rows.write_csv(rows.read(client, job.id, names), file)
    )
    return str(target)


def _tensorboard(client: "Client", job: "Job", names: list[str], to: str | None) -> str:
    from torchyard.export import rows
    from torchyard.export.mirror import Mirror

    target = Path(to or f"job-{job.number}-tensorboard")
    with Mirror(target) as mirror:
        mirror.add(rows.read(client, job.id, names))
    return str(target)


def _mlflow(client: "Client", job: "Job", names: list[str], to: str | None) -> str:
    from torchyard.export import own_python, rows

    about = {
        "uri": to or "",
        "experiment": job.project,
        "name": f"{job.name}-{job.number}",
        "tags": {"torchyard.job": job.id, "torchyard.number": str(job.number), "mlflow.user": job.user},
        "params": {"command": " ".join(command)[:500]} if (command := job.spec.get("command")) else {},
        "status": _MLFLOW_STATUS.get(job.state.value, "RUNNING"),
    }
    run = own_python.run(
        "mlflow_run.py",
        [json.dumps(about)],
        "mlflow",
        lambda file: rows.write_csv(rows.read(client, job.id, names), file),
    )
    return f"run {run} in experiment {job.project}"


_MLFLOW_STATUS: Final[Mapping[str, str]] = {"succeeded": "FINISHED", "failed": "FAILED", "cancelled": "KILLED"}
_WRITERS: Final[Mapping[ExportFormat, Callable[["Client", "Job", list[str], str | None], str]]] = {
    ExportFormat.CSV: _csv,
    ExportFormat.PARQUET: _parquet,
    ExportFormat.TENSORBOARD: _tensorboard,
    ExportFormat.MLFLOW: _mlflow,
}
