"""The pause of the queue and the announcement, over REST on both databases."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from service import notices
from service.controllers.scheduling import Scheduler
from service.db.leader import Leader
from service.infra.observability import Counters
from service.infra.times import moment
from tests.support import box, submissions
from tests.support.live import Live
from tests.support.recorded_context import RecordedContext
from tests.support.wait import until
from torchyard import api

API = "/api/v1"


def submit(live: Live) -> dict[str, Any]:
    body = {"command": ["true"], "launcher": "none", "resources": {"gpus": 1}}
    found: dict[str, Any] = live.client.post(f"{API}/jobs", json=body).raise_for_status().json()
    return found


def add_node(live: Live) -> None:
    box.add_node(live.context.db, "box", 2, last_seen_us=live.context.now_us())


def state(live: Live, job: dict[str, Any]) -> str:
    return box.job_row(live.context.db, job["id"]).state


def actions(live: Live) -> list[str]:
    items = live.client.get(f"{API}/audit").json()["items"]
    return [each["action"] for each in items if each["action"].partition(".")[0] in {"queue", "announcement"}]


def test_a_pause_lets_nothing_start_says_so_and_outlives_the_service(serve: Callable[..., Any]) -> None:
    with serve() as live:
        add_node(live)
        first = submit(live)
        until(lambda: state(live, first) == "assigned")
        paused = live.client.put(f"{API}/pause", json={"message": "replacing a fan"})
        assert paused.status_code == 200, paused.text
        job = submit(live)
    with serve() as live:
        box.add_node(live.context.db, "other", 2, last_seen_us=live.context.now_us())
        why = live.client.get(f"{API}/jobs/{job['id']}/why").json()
        name = live.client.get(f"{API}/settings").json()["user"]["name"]
        assert why["reasons"][0]["code"] == "queue-paused"
        assert f"the queue is paused by {name} since " in why["summary"]
        assert why["summary"].endswith("UTC: replacing a fan.")
        assert (why["expected_start_at"], why["alternatives"]) == (None, [])
        (entry,) = live.client.get(f"{API}/queue").json()["items"]
        assert "replacing a fan" in entry["reason"]
        assert (state(live, job), state(live, first)) == ("queued", "assigned")
        assert live.client.delete(f"{API}/pause").json()["pause"] is None
        until(lambda: state(live, job) == "assigned")
        assert actions(live) == ["queue.resume", "queue.pause"]


@pytest.fixture
def scheduler(yard: RecordedContext) -> Any:
    leader = Leader(yard.ctx.db)
    yield Scheduler(yard.ctx, leader, Counters())
    leader.resign()


def test_a_pass_honours_a_pause_at_once(yard: RecordedContext, scheduler: Scheduler) -> None:
    box.add_job(yard.ctx.db)
    notices.pause(yard.ctx.db, submissions.ADA, api.NewPause(), yard.ctx.now_us())
    assert scheduler.run_pass() == 0
    notices.resume(yard.ctx.db, submissions.ADA, yard.ctx.now_us())
    assert scheduler.run_pass() == 1


def test_an_announcement_goes_when_its_time_is_over(live_service: Live) -> None:
    ends = moment(live_service.context.now_us()) + timedelta(hours=1)
    told = live_service.client.put(f"{API}/announcement", json={"message": "soon", "until": ends.isoformat()})
    assert told.json()["announcement"]["message"] == "soon"
    shown = live_service.client.get(f"{API}/notices")
    assert shown.json() == told.json()
    headers = {"If-None-Match": shown.headers["etag"]}
    assert live_service.client.get(f"{API}/notices", headers=headers).status_code == 304
    over = moment(live_service.context.now_us()) - timedelta(seconds=1)
    gone = live_service.client.put(f"{API}/announcement", json={"message": "soon", "until": over.isoformat()})
    assert gone.json()["announcement"] is None
    live_service.client.put(f"{API}/announcement", json={"message": "for good"}).raise_for_status()
    assert live_service.client.delete(f"{API}/announcement").json()["announcement"] is None
    assert actions(live_service) == ["announcement.clear", *["announcement.set"] * 3]
    assert live_service.client.delete(f"{API}/announcement").status_code == 200


@pytest.mark.parametrize(
    "body", [{"message": ""}, {"message": "a\x1b[2Jb"}, {"message": "x" * 501}, {"message": "x", "until": "18:00"}, {}]
)
def test_what_nobody_could_read_is_refused(live_service: Live, body: dict[str, Any]) -> None:
    assert live_service.client.put(f"{API}/announcement", json=body).status_code == 422


def test_streams_tell_of_notices(live_service: Live) -> None:
    with live_service.client.stream("GET", f"{API}/live", params={"topic": "notices"}) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: open"
        live_service.client.put(f"{API}/pause", json={}).raise_for_status()
        assert next(line for line in lines if line.startswith("event: ") and "beat" not in line) == "event: notices"


def test_another_message_makes_no_new_pause(made: RecordedContext) -> None:
    first = notices.pause(made.ctx.db, submissions.ADA, api.NewPause(message="a fan"), box.NOW)
    again = notices.pause(made.ctx.db, submissions.ADA, api.NewPause(message="two fans"), box.NOW + 3_600_000_000)
    assert first.pause is not None
    assert again.pause == first.pause.model_copy(update={"message": "two fans"})
