"""MLflow where its user has chosen the store: databases are read while the job and others write to them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.compat.test_trackers import curves
from tests.support import wait
from tests.support.user import User

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
SCRIPT = Path(__file__).parent / "scripts" / "mlflow_stores.py"


@contextmanager
def by_hand(user: User, store: str, go: Path) -> Iterator[None]:
    """Another run of the user's in the same store, until the end of the `with`."""
    command = [str(user.environment / "bin" / "python"), str(SCRIPT), str(go), store]
    folder = user.folder.parent / "by-hand"
    folder.mkdir()
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    with subprocess.Popen(command, cwd=folder, env=clean, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        try:
            yield
            assert run.wait(120) == 0
        finally:
            run.kill()


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(False, marks=pytest.mark.proves("mlflow", "metrics", "outputs"), id="snapshot"),
        pytest.param(True, marks=pytest.mark.proves("mlflow", "live"), id="live"),
    ],
)
def test_every_point_in_a_database_of_the_users_is_shown_and_nobody_elses(user: User, live: bool) -> None:
    """One beside the script, one that others write to, and a store of files."""
    go, team = user.folder / "go", user.folder.parent / "team"
    team.mkdir()
    shared = f"sqlite:///{team}/mlflow.db"
    user.by_hand("python", "-c", f"import mlflow; mlflow.set_tracking_uri('{shared}'); mlflow.search_runs()")
    stores = [shared, "sqlite:///own.db", f"file://{team}/runs"]
    with by_hand(user, shared, go):
        job = user.submit(
            *("python", user.copy(SCRIPT), str(go), *stores),
            live=live,
            launcher="python",
            resources={"gpus": 0},
            env={"MLFLOW_ALLOW_FILE_STORE": "true"},
        )
        wait.until(lambda: len(curves(user, job).get("ml-0", [])) > 20, seconds=120, what="points while it runs")
        go.touch()
        user.succeeds(job)
    (line,) = [line for line in user.log(job).splitlines() if line.startswith("steps ")]
    steps = [int(word) for word in line.split()[1:]]
    wanted = {f"ml-{number}": [(step, float(step)) for step in range(made)] for number, made in enumerate(steps)}
    found = {name.rpartition("/")[2]: points for name, points in curves(user, job).items()}
    assert found == wanted
    assert len(found) == 3
    if not live:
        user.written(job, r"own\.db")
