"""Where and when a job would start, told by a dry run over REST before it is submitted."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support import box
from tests.support.live import Live
from tests.support.specs import spec
from tests.support.wait import until

API = "/api/v1"


@pytest.fixture
def live(serve: Callable[..., Any]) -> Any:
    """A service whose box has two GPUs."""
    with serve() as running:
        box.add_node(running.context.db, "box", 2, last_seen_us=running.context.now_us())
        yield running


def post(live: Live, path: str = "/jobs", **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = live.client.post(API + path, json=body).raise_for_status().json()
    return found


def planned(live: Live, **changes: Any) -> dict[str, Any]:
    """The forecast of a job that is not stored."""
    start: dict[str, Any] = post(live, "/jobs?dry_run=true", **spec(**changes))["start"]
    return start


def running(live: Live, **changes: Any) -> dict[str, Any]:
    """A job that has its devices."""
    job = post(live, **spec(**changes))
    until(lambda: box.job_row(live.context.db, job["id"]).state == "assigned")
    return job


def test_a_free_box_starts_it_at_once(live: Live) -> None:
    start = planned(live, resources={"gpus": 2}, project="new")
    assert start["position"] == 1
    assert [(held["node"], held["index"], held["kind"]) for held in start["devices"]] == [
        ("box", 0, "gpu"),
        ("box", 1, "gpu"),
    ]
    assert start["expected_start_at"] is not None
    assert "start" in start["reason"]


def test_behind_a_job_with_a_limit_it_starts_when_that_is_over(live: Live) -> None:
    job = running(live, resources={"gpus": 2}, time_limit="1h", preemptible=False)
    ahead = post(live, **spec(resources={"gpus": 2}, time_limit="1h", priority="high"))
    start = planned(live)
    assert start["position"] == 2
    assert start["expected_start_p90_at"] >= start["expected_start_at"] > job["created_at"]
    assert [held["node"] for held in start["devices"]] == ["box"]
    assert "place 1" not in start["reason"]
    assert live.client.get(f"{API}/jobs/{ahead['id']}/why").json()["position"] == 1
    first = planned(live, priority="urgent")
    assert (first["position"], first["expected_start_at"] <= start["expected_start_at"]) == (1, True)


def test_what_has_no_end_has_no_forecast(live: Live) -> None:
    number = running(live, resources={"gpus": 2})["number"]
    start = planned(live)
    assert (start["expected_start_at"], start["expected_start_p90_at"], start["devices"]) == (None, None, [])
    assert f"job {number}" in start["reason"]
    assert planned(live, after=[str(number)])["reason"].startswith("waits for other jobs")


def test_while_the_queue_is_paused_nothing_starts(live: Live) -> None:
    live.client.put(f"{API}/pause", json={"message": "replacing a fan"}).raise_for_status()
    start = planned(live)
    assert (start["expected_start_at"], start["devices"]) == (None, [])
    assert "replacing a fan" in start["reason"]


def test_of_a_sweep_the_first_trial_is_told(live: Live) -> None:
    start = planned(live, sweep={"resources.gpus": [2, 1]})
    assert len(start["devices"]) == 2


def test_a_rerun_is_checked_without_being_stored(live: Live) -> None:
    job = running(live)
    found = post(live, f"/jobs/{job['id']}/rerun?dry_run=true", changes={"resources": {"gpus": 2}, "name": "again"})
    assert (found["spec"]["name"], found["spec"]["resources"]["gpus"]) == ("again", 2)
    assert found["start"]["position"] == 1
    wrong = live.client.post(
        f"{API}/jobs/{job['id']}/rerun?dry_run=true", json={"changes": {"resources": {"gpus": 3}}}
    ).json()
    assert wrong["errors"][0]["field"] == "resources.gpus"
    assert len(live.client.get(f"{API}/jobs").json()["items"]) == 1
