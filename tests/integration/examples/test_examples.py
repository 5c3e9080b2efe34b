"""The examples as a reader runs them."""

import ast
from pathlib import Path

import pytest
import torch
import yaml

from tests.support import ranks, wait
from tests.support.attempt import AttemptFolder
from torchyard.spec import JobSpec

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_syntax_is_that_of_3_9(script: Path) -> None:
    ast.parse(script.read_text(), feature_version=(3, 9))


@pytest.mark.parametrize("spec", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_specs_are_valid(spec: Path) -> None:
    content = yaml.safe_load(spec.read_text())
    if content["resources"]["gpus"] == "all":  # the service makes a number of it
        content["resources"]["gpus"] = 1
    JobSpec.model_validate(content)


def test_plain_ddp(tmp_path: Path) -> None:
    assert "import torchyard" not in (EXAMPLES / "plain_ddp.py").read_text()
    words = ["--epochs", "2", "--samples", "512"]
    with ranks.started(ranks.script, 2, str(EXAMPLES / "plain_ddp.py"), words, cwd=tmp_path) as started:
        started.results()
        assert "epoch 2/2  loss " in started.output(0)


def stopped_on_the_way(script: str, words: list[str], folder: AttemptFolder) -> int:
    """Stops an example, which would go on for hours, in two ranks after its first report; answers the step."""
    with ranks.started(
        ranks.script, 2, str(EXAMPLES / script), words, environment=folder.environment(), cwd=folder.root
    ) as started:
        wait.until(folder.records, seconds=60, what="the first report")
        folder.ask("stop")
        started.results()
    return int(folder.outcome()["stopped_at_step"])


def resumed(script: str, words: list[str], stopped: AttemptFolder) -> AttemptFolder:
    """Runs an example to its end from another attempt's last checkpoint."""
    folder = AttemptFolder(stopped.root.with_name("resumed"))
    environment = folder.environment(restore=stopped.checkpoints()[-1])
    ranks.run(ranks.script, 2, str(EXAMPLES / script), words, environment=environment, cwd=folder.root)
    return folder


def test_train_ddp_stops_and_resumes(tmp_path: Path) -> None:
    stopped = AttemptFolder(tmp_path / "stopped")
    step = stopped_on_the_way("train_ddp.py", ["--epochs", "1000000", "--samples", "1024"], stopped)
    assert step > 0
    assert list(stopped.series("loss")) == list(range(1, step + 1))

    epochs = step // 16 + 2
    finished = resumed("train_ddp.py", ["--epochs", str(epochs), "--samples", "1024"], stopped)
    assert list(finished.series("loss")) == list(range(step + 1, epochs * 16 + 1))
    state = torch.load(finished.checkpoints()[-1] / "state.pt", weights_only=True)
    assert state["step"] == epochs * 16
    assert set(state["model"]) == {"0.weight", "0.bias", "2.weight", "2.bias"}


def test_attach_ddp_stops_and_resumes(tmp_path: Path) -> None:
    plain, attached = ((EXAMPLES / name).read_text().splitlines() for name in ("plain_ddp.py", "attach_ddp.py"))
    added = [line for line in attached[5:] if line and line not in plain]
    assert len(added) == 4

    stopped = AttemptFolder(tmp_path / "stopped")
    step = stopped_on_the_way("attach_ddp.py", ["--samples", "1024", "--epochs", "1000000"], stopped)
    epochs = step // 16 + 2
    finished = resumed("attach_ddp.py", ["--samples", "1024", "--epochs", str(epochs)], stopped)
    assert list(finished.series("loss")) == list(range(step + 1, epochs * 16 + 1))


def test_train_ddp_off_the_queue(tmp_path: Path) -> None:
    ranks.run(ranks.script, 2, str(EXAMPLES / "train_ddp.py"), ["--epochs", "1", "--samples", "256"], cwd=tmp_path)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000000004"]
