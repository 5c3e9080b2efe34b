"""What the in-job part tells MLflow, and the node of MLflow."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.attempt import AttemptFolder, entered
from torchyard.injob import layout, mlflow


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("sqlite:///mlflow.db", "HERE/mlflow.db"),
        ("sqlite:////team/mlflow.db?timeout=60", "/team/mlflow.db"),
        ("sqlite+pysqlite:////team/mlflow.db", "/team/mlflow.db"),
        ("file:///team/my%20runs", "/team/my runs"),
        ("mlruns", "HERE/mlruns"),
        ("/team/mlruns", "/team/mlruns"),
        ("http://mlflow:5000", None),
        ("postgresql://u:p@db/mlflow", None),
        ("databricks", None),
    ],
)
def test_where_runs_are_kept(uri: str, path: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert mlflow.local_path(uri) == (path and path.replace("HERE", str(tmp_path.resolve())))


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AttemptFolder]:
    yield from entered(AttemptFolder(tmp_path), monkeypatch)


def test_a_run_carries_its_job_and_its_store_is_told_of(
    attempt: AttemptFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(layout.JOB_ID, "job-1")
    uris = ["sqlite:////team/a.db", "https://me:secret@mlflow/", "/team/runs"]
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(get_tracking_uri=lambda: uris[0]))
    context = mlflow.RunContext()
    assert not context.in_context()
    monkeypatch.setenv(layout.READ_TRACKERS, "wandb,mlflow")
    assert context.in_context()
    for _ in range(3):
        assert context.tags() == {"torchyard.job": "job-1"}
        uris.pop(0)
    told = json.loads((attempt.root / layout.MARKS / layout.mlflow_mark(0)).read_text())
    assert told == {"stores": ["/team/a.db", "/team/runs"]}
    assert "MLflow logs to https://mlflow/: its curves are there" in capsys.readouterr().err


def test_a_process_that_the_script_starts_keeps_its_parents_store(
    attempt: AttemptFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    uris = ["/team/parent", "/team/child"]
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(get_tracking_uri=lambda: uris[0]))
    mlflow.RunContext().tags()
    uris.pop(0)
    mlflow.RunContext().tags()  # as a new process has it
    told = json.loads((attempt.root / layout.MARKS / layout.mlflow_mark(0)).read_text())
    assert told == {"stores": ["/team/parent", "/team/child"]}
