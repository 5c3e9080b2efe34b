"""Stores that the user chose for MLflow, as a job and others write to them."""

import json
import os
import time
from pathlib import Path

import pytest

from tests.support import mlflow_store
from tests.unit.worker.forward.test_trackers import Service, drain, launch
from torchyard.injob import layout
from worker.attempts import files
from worker.attempts.folder import AttemptFolder
from worker.forward.trackers import TrackerForwarder
from worker.trackers import translate

STREAM = "mlflow-rank-0.jsonl"
RUN = "0123456789abcdef" * 2


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    folder = AttemptFolder(tmp_path / "attempts", "att-1")
    folder.create()
    for name in (layout.CODE, layout.METRICS, layout.MARKS, layout.CHECKPOINTS, layout.OUTPUT):
        folder.at(name).mkdir(parents=True)
    return folder


def start(folder: AttemptFolder, service: Service | None = None, live: Path | None = None) -> TrackerForwarder:
    """A worker on the folder of a job."""
    record = launch(env={layout.JOB_ID: "job-1"}, live=live and str(live))
    if not folder.at(layout.TRACKERS).exists():
        translate.prepare(folder, record, os.getuid())
    return TrackerForwarder(service or Service(), folder, record, owner=os.getuid(), fresh=service is None)


def has_begun(folder: AttemptFolder) -> int:
    """Lets the job begin now; returns the moment in milliseconds."""
    now_us = time.time_ns() // 1000
    shim = {"pid": 1, "start_ticks": 1, "boot_id": "b", "child_pid": 2, "started_us": now_us}
    files.write_whole(folder.at(layout.SHIM), json.dumps(shim).encode())
    return now_us // 1000


def tell(folder: AttemptFolder, *stores: Path | str) -> None:
    (folder.at(layout.MARKS) / layout.mlflow_mark(0)).write_text(json.dumps({"stores": [str(each) for each in stores]}))


def curve(name: str, *steps: int) -> list[tuple[str, int, float]]:
    return [(name, step, float(step)) for step in steps]


def test_a_database_in_the_jobs_own_folder_is_read_as_it_grows(folder: AttemptFolder) -> None:
    path = folder.at(layout.CODE) / "mlflow.db"
    mlflow_store.log(path, "before", curve("loss", 1))
    service = Service()
    worker = start(folder, service)
    drain(worker, ended=False)
    assert service.points == {}
    mlflow_store.log(path, "a", curve("loss", 2))
    mlflow_store.log(path, "b", curve("loss", 3))
    drain(start(folder, service))
    mlflow_store.log(path, "a", curve("loss", 4))
    drain(start(folder, service))
    assert service.points == {STREAM: [*curve("loss", 2), *curve("name of b/loss", 3), *curve("loss", 4)]}


@pytest.mark.parametrize("told", [False, True], ids=["in its live folder", "told of"])
def test_of_a_database_of_many_jobs_only_the_runs_of_this_one_count(
    folder: AttemptFolder, tmp_path: Path, told: bool
) -> None:
    path = tmp_path / "project" / "team.sqlite"
    path.parent.mkdir()
    began = has_begun(folder)
    mlflow_store.log(path, "mine", curve("loss", 1), job="job-1", at_ms=began - 1)  # an earlier attempt's
    mlflow_store.log(path, "other", curve("loss", 2), job="job-2", at_ms=began)
    mlflow_store.log(path, "by hand", curve("loss", 3), at_ms=began)
    service = Service()
    worker = start(folder, service, live=None if told else path.parent)
    if told:
        tell(folder, path)
    drain(worker)
    assert service.points == {}
    mlflow_store.log(path, "mine", curve("loss", 4), job="job-1", at_ms=began)
    drain(worker)
    assert service.points == {STREAM: curve("loss", 4)}


def test_of_a_file_store_of_many_jobs_only_the_runs_of_this_one_count(folder: AttemptFolder, tmp_path: Path) -> None:
    began = has_begun(folder)
    for number, job in enumerate(["job-1", "job-2"]):
        run = tmp_path / "project" / "mlruns" / "0" / f"{number}{RUN[1:]}"
        for name in ("metrics", "tags"):
            (run / name).mkdir(parents=True)
        (run / "tags" / "torchyard.job").write_text(job)
        (run / "metrics" / "loss").write_text(f"{began - 1} 0 0\n{began} 1 {number}\n")
    service = Service()
    drain(start(folder, service, live=tmp_path / "project"))
    assert service.points == {STREAM: [("loss", 0, 1.0)]}


def test_what_a_job_tells_of_its_stores_may_be_anything(folder: AttemptFolder, tmp_path: Path) -> None:
    strange = tmp_path / "strange"
    strange.write_bytes(b"noise" * 1000)
    (tmp_path / "link.db").symlink_to(strange)
    tell(folder, strange, tmp_path / "link.db", tmp_path / "missing", "relative", "/dev/zero", "/proc/self/mem", "/\0")
    (folder.at(layout.MARKS) / layout.mlflow_mark(1)).write_text("[" * 10_000)
    (folder.at(layout.MARKS) / layout.mlflow_mark(2)).write_text('{"stores": [1, {}]}')
    service = Service()
    drain(start(folder, service))
    assert service.points == {}


def test_what_is_reported_under_another_name_is_no_second_curve(folder: AttemptFolder) -> None:
    mark = folder.at(layout.MARKS) / layout.renamed_mark(0)
    mark.write_text(json.dumps({"mlflow": {"loss": "train/loss", "bad": 1}, "wandb": {"own": "x"}, "strange": []}))
    path = folder.at(layout.CODE) / "mlflow.db"
    service = Service()
    worker = start(folder, service)
    mlflow_store.log(path, "a", [*curve("loss", 1), *curve("own", 1), *curve("bad", 1)])
    drain(worker)
    assert service.points == {STREAM: [*curve("train/loss", 1), *curve("own", 1), *curve("bad", 1)]}
