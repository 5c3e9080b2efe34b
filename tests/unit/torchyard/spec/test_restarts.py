from typing import Any

import pytest

from torchyard.spec import JobSpec
from torchyard.spec.policy import Policy
from torchyard.spec.restarts import RestartPermission, may_be_put_back, restart_permission, stoppable

NEVER, AUTO, ASKED = RestartPermission
PLAIN = {"command": ["python", "train.py"], "launcher": "python", "code": "snap-1"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, AUTO),
        ({"launcher": "torchrun"}, AUTO),
        ({"restartable": True}, ASKED),
        ({"restartable": True, "launcher": "none"}, ASKED),
        ({"restartable": True, "preemptible": False}, ASKED),
        ({"restartable": False}, NEVER),
        ({"preemptible": True}, AUTO),
        ({"preemptible": False}, NEVER),
        ({"launcher": "none"}, NEVER),
        ({"code": None, "live": "/data/run"}, NEVER),
        ({"link": ["data"], "link_root": "/home/ada/run"}, NEVER),
        ({"code": None}, NEVER),
        ({"code": None, "command": None, "recipe": {"model": "x"}}, AUTO),
    ],
)
def test_who_may_start_over(changes: dict[str, Any], says: RestartPermission) -> None:
    assert restart_permission(PLAIN | changes) is says


@pytest.mark.parametrize("closed", [{"policy": Policy(no_restarts=("vision",))}, {"project_restarts": False}])
def test_a_project_forbids_it_to_those_that_do_not_ask(closed: dict[str, Any]) -> None:
    never_tried: dict[str, Any] = {"project": "vision", "policy": Policy(), "attempts": 0, "restarts": 0}
    assert [may_be_put_back(says, **never_tried) for says in (NEVER, AUTO, ASKED)] == [False, True, True]
    assert [may_be_put_back(says, **never_tried | closed) for says in (NEVER, AUTO, ASKED)] == [False, False, True]


@pytest.mark.parametrize(
    ("attempts", "restarts", "may"), [(0, 0, True), (1, 1, True), (2, 2, False), (1, 0, False), (2, 1, False)]
)
def test_it_may_as_often_as_the_policy_says_and_not_after_another_end(attempts: int, restarts: int, may: bool) -> None:
    assert may_be_put_back(ASKED, "vision", Policy(restarts=2), attempts=attempts, restarts=restarts) is may


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
