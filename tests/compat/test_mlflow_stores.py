"""MLflow where its user has chosen the store: databases are read while the job and others write to them."""

from pathlib import Path

import pytest

from tests.compat.by_hand import ByHand
from tests.compat.test_trackers import curves
from tests.support import wait
from tests.support.user import User

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
SCRIPT = Path(__file__).parent / "scripts" / "mlflow_stores.py"


@pytest.mark.proves("mlflow", "metrics", "outputs")
def test_every_point_in_a_database_of_the_users_is_shown_and_nobody_elses(user: User, by_hand: ByHand) -> None:
    """One that others write to, one beside the script, and files; `test_trackers.py` has the last two live."""
    go, team = user.folder / "go", user.folder.parent / "team"
    team.mkdir()
    shared = f"sqlite:///{team}/mlflow.db"
    by_hand(team, SCRIPT, str(team), shared, load=["mlflow"])  # a run that has ended, and makes the tables
    stores = [shared, "sqlite:///own.db", f"file://{team}/runs"]
    with by_hand.running(team, SCRIPT, str(go), shared):
        job = user.submit(
            *("python", user.copy(SCRIPT), str(go), *stores),
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
    user.written(job, r"own\.db")
