"""Actions of routes."""

import pytest

from service.api.audited import ACTIONS, UNRECORDED, action_of


@pytest.mark.parametrize(
    ("method", "path", "action"),
    [
        ("POST", "/api/v1/jobs/{job_id}/cancel", "job.cancel"),
        ("DELETE", "/api/v1/users/{name}", "user.change"),
        ("POST", "/api/v1/agent/heartbeat", "agent.report"),
        ("POST", "/api/v1/nothing", "unknown"),
    ],
)
def test_actions_follow_from_the_route(method: str, path: str, action: str) -> None:
    assert action_of(method, path) == action


def test_what_is_not_recorded_is_known() -> None:
    assert set(ACTIONS.values()) >= UNRECORDED
