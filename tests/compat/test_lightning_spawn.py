"""Lightning under its distribution's other name, with ranks that it spawns."""

import re
from pathlib import Path

import pytest

from tests.support import stopping
from tests.support.user import User

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
SCRIPT = Path(__file__).parents[2] / "examples" / "frameworks" / "lightning_trainer.py"
ARGUMENTS = ("--devices", "2", "--epochs", "30", "--samples", "1024", "--strategy", "ddp_spawn")


def checksum(log: str) -> str:
    (found,) = re.findall(r"checksum of the weights (\w+)", log)
    return str(found)


@pytest.mark.proves("pytorch-lightning", "starts", "metrics", "clean stop", "exact resume", "live", "preempted")
def test_it_stops_and_goes_on_exactly(user: User) -> None:
    script = user.folder / "train.py"
    script.write_text(SCRIPT.read_text().replace("import lightning as L", "import pytorch_lightning as L"))
    job = user.submit(
        *("python", script.name, *ARGUMENTS),
        live=True,
        launcher="python",
        resources={"gpus": 2},
        grace=600,
        env={"OMP_NUM_THREADS": "1"},
    )
    ended = user.succeeds(stopping.preempted(user, job).resumed)
    step = user.yard.client.attempts(job.id)[-1].resumed_from_step
    assert f"stopped at step {step}" in user.log(job, attempt=1)
    assert {"train_loss", "val_accuracy", "epoch"} <= user.series(ended).keys()
    assert checksum(user.log(ended)) == checksum(user.by_hand("python", script.name, *ARGUMENTS))
