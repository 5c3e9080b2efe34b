"""A port that another program took before torchrun could: from what torchrun says of it to the job's next start."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from service.db.engine import Database
from tests.support import box
from tests.support.node import Box, ended, log
from torchyard.injob import layout
from torchyard.states import JobState
from torchyard.wire import Go, Result
from worker.attempts.folder import AttemptFolder
from worker.forward import results

#: A rank's own server at a port that is given to it.
LISTENS = "import socket\nsocket.socket().bind(('127.0.0.1', {port}))\n"


def of_the_launcher(root: Path, port: int) -> Result:
    """The first of two nodes is told to meet at this port, which its torchrun opens."""
    node = Box(root)
    resources = {"gpus": 0, "nodes": 2}
    folder = node.assign(launcher="torchrun", command=["train.py"], files={"train.py": ""}, resources=resources)
    go = Go(go=True, address="127.0.0.1", port=port)
    (node.control.root / "go" / f"{folder.attempt_id}.json").write_text(go.model_dump_json())
    node.launcher.start(folder.attempt_id)
    result = ended(folder)
    assert "EADDRINUSE" in log(folder, layout.LAUNCHER_LOG)
    return as_reported(result, folder)


def of_a_rank(root: Path, port: int) -> Result:
    """A script opens the port by its number."""
    files = {"train.py": LISTENS.format(port=port)}
    folder, result = Box(root).run(launcher="torchrun", command=["train.py"], files=files, slots=1)
    return as_reported(result, folder)


def as_reported(result: Result, folder: AttemptFolder) -> Result:
    """With the cause that the worker finds in the logs."""
    return results.complete(result, folder.path, dropped_bytes=0, dropped_records=0)


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """How attempts really end whose launcher, or whose script, meets a port in use."""
    ways: list[Callable[[Path, int], Result]] = [of_the_launcher, of_a_rank]
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        return {way.__name__: way(tmp_path_factory.mktemp(way.__name__), port) for way in ways}


def states(db: Database, result: Result, attempts: int) -> tuple[list[JobState], str]:
    """A job's state after each of so many attempts that end like this, and what it says in the end."""
    box.add_people(db)
    gpus, job = box.add_node(db), box.add_job(db)
    fields = result.model_dump(include=result.model_fields_set - {"started_us", "ended_us"})
    found = [box.finish(db, box.start(db, job, gpus[:1]), **fields) for _ in range(attempts)]
    row = box.job_row(db, job)
    assert row.retries_used == 0
    return found, row.error["message"] if row.error else ""


def test_a_port_that_torchrun_finds_taken_is_tried_again_once(db: Database, taken: dict[str, Result]) -> None:
    found, said = states(db, taken["of_the_launcher"], 2)
    assert found == [JobState.QUEUED, JobState.FAILED]
    assert "the port that was chosen for its ranks to meet at has been taken by another program meanwhile" in said


def test_a_port_that_the_script_fixed_is_not_tried_again(db: Database, taken: dict[str, Result]) -> None:
    found, said = states(db, taken["of_a_rank"], 1)
    assert found == [JobState.FAILED]
    assert "the port that it listens at is in use on this box: do not fix one" in said
