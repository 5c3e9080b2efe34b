"""What a submission tells of being put back after a trial."""

from typing import Any

import pytest

from service.jobs.trial_note import trial_note
from torchyard.spec import JobSpec
from torchyard.spec.policy import Order, Policy

RECIPE = {"project": "vision", "recipe": {"model": "digits_cnn"}}


def note(policy: Policy, *, project_restarts: bool = True, **fields: Any) -> str:
    found = trial_note(JobSpec.model_validate(RECIPE | fields), policy, project_restarts=project_restarts)
    return "" if found is None else found.message


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (Policy(), "may be put back 1m after its first step and start from the beginning, 2 times at most"),
        (
            Policy(time_slice=150, restarts=1),
            "may be put back 2m30s after its first step and start from the beginning, once",
        ),
        (Policy(restarts=0), "never put back to start over, as the policy has restarts: 0"),
        (Policy(time_slice=None), "never put back to start over, as the policy has time_slice: null"),
        (Policy(order=Order.SRTF), "never put back to start over, as the policy has order: srtf"),
    ],
)
def test_it_is_told_as_the_policy_has_it(policy: Policy, told: str) -> None:
    assert told in note(policy)
    assert told in note(policy, restartable=True, preemptible=False)


def test_a_project_that_wants_none_holds_unless_the_job_asks_for_it() -> None:
    listed = Policy(no_restarts=("vision",))
    assert note(listed) == "it is never put back to start over, as the policy has project vision in no_restarts"
    assert note(Policy(), project_restarts=False) == "it is never put back to start over, as project vision wants it"
    for policy in (listed, Policy()):
        asked = note(policy, project_restarts=False, restartable=True, preemptible=False)
        assert asked.endswith("2 times at most (restartable: true)")


def test_who_asks_for_it_may_be_stopped_whenever_the_policy_stops_anybody() -> None:
    told = "once it has run for 1m, it may be stopped for others, and starts from its newest checkpoint, or else"
    for policy in (Policy(), Policy(restarts=0), Policy(time_slice=None), Policy(preemption=False)):
        assert note(policy, project_restarts=False, restartable=True).startswith(told)
    calm = note(Policy(time_slice=None, preemption=False), restartable=True)
    assert calm == "it is never stopped for others, as the policy has preemption: false and time_slice: null"


def test_nothing_is_told_where_the_spec_rules_it_out() -> None:
    for fields in ({"restartable": False}, {"preemptible": False}):
        assert note(Policy(), **fields) == ""
