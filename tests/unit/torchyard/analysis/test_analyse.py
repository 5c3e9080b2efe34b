"""What the owner of a job is told at its submission."""

from pathlib import Path
from typing import Any

import pytest

from torchyard.analysis.analyse import analyse
from torchyard.exceptions import SpecError
from torchyard.spec import JobSpec


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"env": {"TRACKIO_DIR": "/team/trackio"}}, True),
        ({"env": {"TRACKIO_DIR": "runs"}}, True),
        ({"env": {"TRACKIO_DIR": "/team/trackio"}, "trackers": ["wandb"]}, False),
        ({}, False),
    ],
)
def test_it_is_said_where_curves_of_trackio_cannot_be_shown(tmp_path: Path, spec: dict[str, Any], told: bool) -> None:
    given = {"command": ["true"], "launcher": "none", "live": str(tmp_path), **spec}
    warnings = analyse(JobSpec.model_validate(given)).warnings
    assert any("no curves of Trackio" in each for each in warnings) is told


@pytest.mark.parametrize(
    "work", [{"command": ["true"]}, {"recipe": {"model": {"name": "mlp"}, "data": {"name": "digits"}}}]
)
def test_keys_in_env_are_told_with_the_mend_and_without_their_values(work: dict[str, Any]) -> None:
    env = {"WANDB_API_KEY": "0123456789abcdef", "LR": "0.1"}
    (told,) = [each for each in analyse(JobSpec.model_validate({**work, "env": env})).warnings if "LR" not in each]
    assert "env.WANDB_API_KEY looks like a key or a password" in told
    assert "`yard secrets set WANDB_API_KEY`" in told
    assert "0123456789abcdef" not in told


@pytest.mark.parametrize("command", [["play.ipynb"], ["python", "play.ipynb", "--lr", "0.1"]])
@pytest.mark.parametrize("launcher", ["auto", "none"])
def test_a_notebook_is_refused_with_what_runs_it(tmp_path: Path, command: list[str], launcher: str) -> None:
    (tmp_path / "play.ipynb").write_text("{}")
    spec = JobSpec.model_validate({"command": command, "launcher": launcher, "live": str(tmp_path)})
    with pytest.raises(SpecError, match=r"nbconvert --to script play\.ipynb.*papermill play\.ipynb"):
        analyse(spec)


@pytest.mark.parametrize(
    ("text", "command", "told"),
    [
        ("import sys\ndef f(:\n", ["python", "train.py"], True),
        ("import sys\n", ["python", "train.py"], False),
        ("if true; then (:\n", ["./train.py"], False),
    ],
)
def test_a_script_that_python_cannot_read_is_told(tmp_path: Path, text: str, command: list[str], told: bool) -> None:
    (tmp_path / "train.py").write_text(text)
    warnings = analyse(JobSpec.model_validate({"command": command, "live": str(tmp_path)})).warnings
    assert any(each.startswith("command: train.py, line 2: ") for each in warnings) is told
