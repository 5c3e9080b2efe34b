"""Actions of routes."""

from pathlib import Path

import pytest

import service
from service.api.audited import ACTIONS, RECORDED_HERE, action_of

SERVICE = Path(service.__file__).parent


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


def test_what_is_recorded_here_is_known() -> None:
    assert set(ACTIONS.values()) >= RECORDED_HERE


def test_every_other_action_is_recorded_where_it_is_done() -> None:
    """By its name, or as the request that is under way (`audit.record_request`)."""
    source = "".join(path.read_text() for path in SERVICE.rglob("*.py") if path.name != "audited.py")
    by_request = {"job.submit", "job.change", "job.cancel", "job.hold", "job.release", "job.checkpoint", "job.rerun"}
    by_request |= {"sweep.cancel", "sweep.hold", "sweep.release"}
    none = {"snapshot.upload", "stream.follow", "policy.try"}  # no changes
    others = set(ACTIONS.values()) - RECORDED_HERE - by_request - none
    assert [action for action in sorted(others) if f'"{action}"' not in source] == []
