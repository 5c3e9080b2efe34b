from typing import Any

import pytest

from torchyard.spec import JobSpec
from torchyard.spec.restarts import starts_over, stoppable

PLAIN = {"command": ["python", "train.py"], "launcher": "python", "code": "snap-1"}


@pytest.mark.parametrize(
    ("changes", "may"),
    [
        ({}, True),
        ({"launcher": "torchrun"}, True),
        ({"restartable": True}, True),
        ({"restartable": True, "launcher": "none"}, True),
        ({"restartable": False}, False),
        ({"preemptible": True}, True),
        ({"preemptible": False}, False),
        ({"launcher": "none"}, False),
        ({"code": None, "live": "/data/run"}, False),
        ({"link": ["data"], "link_root": "/home/ada/run"}, False),
        ({"code": None}, False),
        ({"code": None, "command": None, "recipe": {"model": "x"}}, True),
    ],
)
def test_who_may_start_over(changes: dict[str, Any], may: bool) -> None:
    assert starts_over(PLAIN | changes) is may


@pytest.mark.parametrize(
    ("spec", "without", "with_checkpoint"),
    [
        ({}, False, True),
        ({"restartable": "auto"}, False, True),
        ({"restartable": True}, True, True),
        ({"preemptible": True}, True, True),
        ({"preemptible": False, "restartable": True}, False, False),
    ],
)
def test_who_may_be_stopped(spec: dict[str, Any], without: bool, with_checkpoint: bool) -> None:
    assert (stoppable(spec, saves=False), stoppable(spec, saves=True)) == (without, with_checkpoint)


def test_what_is_not_said_is_auto_and_what_was_said_stays() -> None:
    assert JobSpec.model_validate({"command": ["true"]}).restartable == "auto"
    assert JobSpec.model_validate({"command": ["true"], "restartable": "false"}).restartable is False
    assert JobSpec.model_validate({"command": ["true"], "restartable": "auto"}).restartable == "auto"
