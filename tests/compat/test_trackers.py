"""Jobs that log with trackers of their own show their curves, with no changed line."""

import csv
import json
import math
import os
import signal
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.compat.by_hand import ByHand
from tests.support import events, wait, wandb_server
from tests.support.stack import YARD, Stack
from tests.support.user import User
from tests.support.wandb_server import WandbServer
from torchyard.api import Job
from torchyard.spec.policy import Policy
from torchyard.states import AttemptState, JobState

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
SCRIPTS = Path(__file__).parent / "scripts"
TRACKERS = ["tensorboard", "mlflow", "wandb", "trackio"]
#: More than any curve here has: none is thinned.
MAX_POINTS = 100_000
OFFLINE = {"WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1"}

Curves = dict[str, list[tuple[int, float]]]


@pytest.fixture(scope="module")
def everything(yard: Stack, environment: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[User, Job]:
    """A job that has logged with all of them, and its user."""
    user = User(yard, environment, tmp_path_factory.mktemp("project"))
    script, log = user.copy(SCRIPTS / "log_everywhere.py"), str(user.folder / "logged.json")
    job = user.submit("python", script, log, *TRACKERS, launcher="python", env=OFFLINE, resources={"gpus": 0})
    return user, user.succeeds(job)


@pytest.mark.proves("tensorboard", "starts", "metrics")
@pytest.mark.proves("mlflow", "starts", "metrics")
@pytest.mark.proves("wandb", "starts", "metrics")
@pytest.mark.proves("trackio", "starts", "metrics")
def test_every_point_of_every_tracker_is_there(everything: tuple[User, Job]) -> None:
    user, job = everything
    expected = json.loads((user.folder / "logged.json").read_text())
    assert set(expected) == set(TRACKERS)
    wanted = {name: points for tracker in TRACKERS for name, points in expected[tracker].items()}
    wanted |= {name: as_floats(points) for name, points in expected["tensorboard"].items() if name != "tb/double"}
    found = curves(user, job)
    assert found.keys() == wanted.keys()
    assert {name: words(points) for name, points in found.items()} == {n: words(p) for n, p in wanted.items()}


@pytest.mark.proves("tensorboard", "outputs")
@pytest.mark.proves("mlflow", "outputs")
@pytest.mark.proves("wandb", "outputs")
@pytest.mark.proves("trackio", "outputs")
def test_the_trackers_own_files_are_kept(everything: tuple[User, Job]) -> None:
    user, job = everything
    parts = ("runs/train/events.out.tfevents.", "runs/val/events.out.", "/metrics/ml/loss", ".wandb", "trackio/p.db")

    def names() -> list[str]:
        return [each.name for each in user.yard.client.outputs(job.id)]

    wait.until(lambda: all(any(part in name for name in names()) for part in parts), seconds=60, what="the files")
    assert not [name for name in names() if name.endswith(("-shm", "-wal"))], "reading leaves no trace"


def curves(user: User, job: Job) -> Curves:
    """A job's curves as steps and numbers."""
    found = user.yard.client.metrics(job.id, max_points=MAX_POINTS).series
    return {series.name: [(step, float(value)) for step, _, value in series.points] for series in found}


def yard_command(user: User, *words: str) -> str:
    """What a `yard` command prints in the user's folder, with their environment active."""
    done = subprocess.run(
        [*YARD, *words], cwd=user.folder, env=active(user), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def active(user: User) -> dict[str, str]:
    path = f"{user.environment / 'bin'}:{user.yard.environment['PATH']}"
    return user.yard.environment | {"VIRTUAL_ENV": str(user.environment), "PATH": path}


def printed(by_hand: ByHand, user: User, code: str, *words: str, load: str, **variables: str) -> Any:
    """What code prints that a user runs by hand, as JSON."""
    script = user.folder / "printed.py"
    script.write_text(code)
    return json.loads(by_hand(user.folder, script, *words, load=[load], environment=variables).splitlines()[-1])


PARQUET = """
import json, sys
from pyarrow import parquet
rows = parquet.read_table(sys.argv[1]).to_pylist()
print(json.dumps([[row["name"], row["step"], repr(row["value"])] for row in rows]))
"""
ACCUMULATOR = "tensorboard.backend.event_processing.event_accumulator"
EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0}).Reload()
print(json.dumps([[name, event.step, repr(event.value)]
                  for name in found.Tags()["scalars"] for event in found.Scalars(name)]))
"""
RUN = """
import json, sys, mlflow
client = mlflow.MlflowClient()
run = client.search_runs([client.get_experiment_by_name("default").experiment_id])[0]
print(json.dumps([[name, point.step, repr(point.value)] for name in run.data.metrics
                  for point in client.get_metric_history(run.info.run_id, name)]))
"""


def test_all_points_go_into_files_of_other_tools(everything: tuple[User, Job], by_hand: ByHand) -> None:
    user, job = everything
    points = sorted((name, step, repr(value)) for name, curve in curves(user, job).items() for step, value in curve)
    assert len(points) > 10_000
    with (user.folder / yard_command(user, "metrics", str(job.number), "--export", "csv")).open() as file:
        assert sorted((row["name"], int(row["step"]), row["value"]) for row in csv.DictReader(file)) == points
    table = yard_command(user, "metrics", str(job.number), "--export", "parquet")
    assert sorted(map(tuple, printed(by_hand, user, PARQUET, table, load="pyarrow.parquet"))) == points
    folder = yard_command(user, "metrics", str(job.number), "--export", "tensorboard", "--to", "events")
    rounded = sorted((name, step, repr(as_float(float(value)))) for name, step, value in points)
    assert sorted(map(tuple, printed(by_hand, user, EVENTS, folder, load=ACCUMULATOR))) == rounded


def test_an_mlflow_server_gets_a_run(everything: tuple[User, Job], by_hand: ByHand, port: int) -> None:
    user, job = everything
    uri = f"http://127.0.0.1:{port}"
    words = ["-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command = [str(user.environment / "bin" / "python"), *words, "--backend-store-uri", f"{user.folder}/server"]
    with serving(command, user, f"{uri}/health", MLFLOW_ALLOW_FILE_STORE="true"):
        yard_command(user, "metrics", str(job.number), "ml/loss", "ml/odd", "--export", "mlflow", "--to", uri)
        found = printed(by_hand, user, RUN, load="mlflow", MLFLOW_TRACKING_URI=uri)
    names = {"ml/loss", "ml/odd"}
    points = [
        (name, step, value) for name, curve in curves(user, job).items() for step, value in curve if name in names
    ]
    assert sorted((name, step, value) for name, step, value in found) == sorted(
        (name, step, repr(value)) for name, step, value in points
    )


def test_tensorboard_shows_the_users_own_files_and_jobs_that_have_none(everything: tuple[User, Job], port: int) -> None:
    user, job = everything
    script = user.folder / "report.py"
    script.write_text("import torchyard\nfor step in range(5):\n    torchyard.report(step=step, loss=step)\n")
    plain = user.succeeds(user.submit("python", script.name, launcher="python", resources={"gpus": 0}))
    words = ["tensorboard", str(job.number), str(plain.number), "--port", str(port), "--host", "127.0.0.1"]
    run, own = f"{plain.number}-{plain.name}", f"{job.number}-{job.name}/runs"
    with serving([*YARD, *words], user, f"http://127.0.0.1:{port}/"):
        base = f"http://127.0.0.1:{port}/data/plugin/scalars"
        # It loads one run after the other, point by point.
        wait.until(lambda: {run, f"{own}/train", f"{own}/val"} <= httpx.get(f"{base}/tags").json().keys(), what="runs")
        wait.until(lambda: len(shown(base, run, "loss")) == 5, what="the points")
        assert shown(base, run, "loss") == [[step, float(step)] for step in range(5)]


def shown(base: str, run: str, tag: str) -> list[list[float]]:
    """Steps and values that TensorBoard has of a curve."""
    return [point[1:] for point in httpx.get(f"{base}/scalars", params={"run": run, "tag": tag}).json()]


@contextmanager
def serving(command: list[str], user: User, url: str, **variables: str) -> Iterator[None]:
    """A server of the user's, until the end of the `with`."""
    log = user.folder / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, cwd=user.folder, env=active(user) | variables, stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait.until(lambda: answers(url, server), seconds=90, what=f"{url}: {log}")
        yield
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def answers(url: str, server: "subprocess.Popen[bytes]") -> bool:
    assert server.poll() is None, "the server has ended"
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def server() -> Iterator[WandbServer]:
    with wandb_server.serve() as running:
        yield running


def as_floats(points: list[Any]) -> list[tuple[int, float]]:
    """TensorBoard keeps numbers of 32 bits."""
    return [(step, as_float(value)) for step, value in points]


def as_float(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def words(points: list[Any]) -> list[str]:
    """Points that can be compared, not-a-number included."""
    return [f"{step} {float(value)!r}" for step, value in points]


@pytest.mark.proves("tensorboard", "live")
@pytest.mark.proves("mlflow", "live")
@pytest.mark.proves("wandb", "live")
@pytest.mark.proves("trackio", "live")
def test_in_the_users_own_folder_and_with_the_worker_killed_nothing_is_lost_or_doubled(
    user: User, by_hand: ByHand
) -> None:
    """A file of an earlier job in the folder is none of this one's, nor is another run in its user's database."""
    old = user.folder / "shared" / "events.out.tfevents.1700000000.elsewhere.1.0"
    old.parent.mkdir()
    old.write_bytes(events.file([events.scalar("loss", 1.0, 1)]))
    go, team = user.folder / "go", user.folder.parent / "team"
    team.mkdir()
    stores = ["sqlite:///own.db", f"file://{team}/runs"]
    by_hand(user.folder, user.copy(SCRIPTS / "mlflow_stores.py"), str(team), stores[0], load=["mlflow"])
    script = user.copy(SCRIPTS / "log_on_ranks.py")
    job = user.submit("python", script, str(go), *stores, live=True, env=OFFLINE, resources={"gpus": 2})
    for points in (20, 40):
        wait.until(partial(enough, user, job, points), seconds=120, what=f"{points} points")
        user.yard.kill("worker")
    go.touch()
    user.succeeds(job)
    found = user.yard.client.metrics(job.id, max_points=MAX_POINTS).series
    made = [int((user.folder / f"steps-{rank}").read_text()) for rank in range(2)]
    values = {(last(each.name), each.rank): [(step, value) for step, _, value in each.points] for each in found}
    assert values == {
        ("loss", 0): [(step, float(step)) for step in range(made[0])],
        ("loss", 1): [(step, 1e6 + step) for step in range(made[1])],
        **{(name, 0): [(step, float(step)) for step in range(made[0])] for name in ("wb", "tr", "ml")},
        **{(f"ml-{number}", 0): [(step, float(step)) for step in range(20)] for number in range(2)},
    }
    assert len(found) == len(values)


def last(name: str) -> str:
    """A curve's own name, without that of its run."""
    return name.rpartition("/")[2]


def enough(user: User, job: Job, points: int) -> bool:
    """Whether all curves of a job that goes on have so many points."""
    series = [each for each in user.yard.client.metrics(job.id).series if "ml-" not in each.name]
    return len(series) == 5 and all(len(each.points) >= points for each in series)


@pytest.mark.proves("tensorboard", "preempted")
@pytest.mark.proves("mlflow", "preempted")
@pytest.mark.proves("wandb", "preempted")
@pytest.mark.proves("trackio", "preempted")
def test_a_job_that_makes_room_goes_on_with_its_runs(user: User, server: WandbServer) -> None:
    """Weights & Biases is online here, where one run of two attempts has to be one at its server too."""
    client = user.yard.client
    client.set_policy(Policy(min_run=0))
    script = user.copy(SCRIPTS / "log_until_stopped.py")
    whole = {"resources": {"gpus": 2}, "launcher": "python"}
    job = user.submit("python", script, env=OFFLINE | server.environment, priority="low", restartable=True, **whole)
    names = ("tb", "ml", "wb", "tr")
    halfway = {name: [(step, float(step)) for step in range(5)] for name in names}
    wait.until(lambda: curves(user, job) == halfway, seconds=120, what="the first half")
    urgent = client.submit({"priority": "urgent", "launcher": "none", "command": ["true"], "resources": {"gpus": 2}})
    assert client.wait(urgent.id).state is JobState.SUCCEEDED
    user.succeeds(job)
    assert [each.state for each in client.attempts(job.id)] == [AttemptState.PREEMPTED, AttemptState.SUCCEEDED]
    assert curves(user, job) == {name: [(step, float(step)) for step in range(10)] for name in names}
    logs = [b"".join(client.logs(job.id, attempt=number)).decode() for number in (1, 2)]
    ids = [next(line for line in log.splitlines() if line.startswith("ids ")) for log in logs]
    assert ids[0] == ids[1]
    assert list(server.history) == [ids[0].split()[1]]
    # What a stopped client has not sent yet stays in its file, as by hand.
    assert [point["wb"] for point in server.history[ids[0].split()[1]]][-5:] == [*range(5, 10)]
    kept = {f"mlruns/0/{ids[0].split()[2]}/artifacts/from-{start}.txt" for start in (0, 5)}
    wait.until(lambda: kept <= {each.name for each in client.outputs(job.id)}, seconds=60, what="its artifacts")


def test_a_job_that_is_put_back_makes_a_new_run(user: User, server: WandbServer) -> None:
    """Weights & Biases drops steps below a run's last one: of the trial's run it would take none."""
    client = user.yard.client
    client.set_policy(Policy(min_run=0, time_slice=600))  # for as long it may be put back
    script, go = user.copy(SCRIPTS / "log_from_the_start.py"), user.folder / "go"
    whole = {"resources": {"gpus": 2}, "launcher": "python"}
    job = user.submit("python", script, str(go), env=OFFLINE | server.environment, priority="low", **whole)
    steps = [(step, float(step)) for step in range(20)]
    wait.until(lambda: curves(user, job) == {"tb": steps, "wb": steps}, seconds=120, what="the trial's steps")
    wait.until(lambda: sum(map(len, server.history.values())) == 20, seconds=60, what="the trial's run at the server")
    urgent = client.submit({"priority": "urgent", "launcher": "none", "command": ["true"], "resources": {"gpus": 2}})
    assert client.wait(urgent.id).state is JobState.SUCCEEDED
    go.touch()
    user.succeeds(job)
    assert [each.put_back for each in client.attempts(job.id)] == [True, False]
    assert curves(user, job) == {"tb": steps, "wb": steps}
    logs = [b"".join(client.logs(job.id, attempt=number)).decode() for number in (1, 2)]
    runs = [next(line.split()[1] for line in log.splitlines() if line.startswith("id ")) for log in logs]
    assert [[point["wb"] for point in server.history[run]] for run in runs] == [[*range(20)]] * 2
    assert runs[0] != runs[1]


def test_a_job_may_leave_its_trackers_to_themselves(user: User) -> None:
    script = user.copy(SCRIPTS / "log_everywhere.py")
    words = ["python", script, str(user.folder / "logged.json"), "mlflow", "trackio"]
    store = f"file://{user.folder}/own"
    env = OFFLINE | {"MLFLOW_TRACKING_URI": store, "MLFLOW_ALLOW_FILE_STORE": "true"}
    job = user.submit(*words, launcher="python", env=env, resources={"gpus": 0}, trackers=["wandb"])
    user.succeeds(job)
    assert curves(user, job) == {}
    assert list((user.folder / "own").glob("*/*/metrics/*"))
