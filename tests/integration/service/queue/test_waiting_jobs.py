"""Waiting jobs in the order of the queue, over real HTTP, on both databases."""

from typing import Any

from tests.support.live import Live
from tests.support.specs import spec

JOBS = "/api/v1/jobs"


def submit(live: Live, **changes: Any) -> None:
    live.client.post(JOBS, json=spec(**changes)).raise_for_status()


def places(live: Live, **params: Any) -> list[tuple[int, int]]:
    page = live.client.get(JOBS, params={"order": "queue", **params}).raise_for_status().json()
    return [(job["number"], job["place"]) for job in page["items"]]


def test_they_stand_by_their_places(live_service: Live) -> None:
    submit(live_service, priority="low")
    submit(live_service, priority="high", name="first")
    submit(live_service)
    submit(live_service)
    live_service.client.post(f"{JOBS}/4/cancel").raise_for_status()
    in_queue = [
        (entry["number"], entry["position"]) for entry in live_service.client.get("/api/v1/queue").json()["items"]
    ]
    assert places(live_service) == in_queue == [(2, 1), (3, 2), (1, 3)]
    assert places(live_service, offset=1, limit=1) == [(3, 2)]
    assert places(live_service, limit=1, cursor="2") == [(1, 3)]
    assert places(live_service, q="first") == [(2, 1)]
    assert places(live_service, state="running") == []
    page = live_service.client.get(JOBS, params={"order": "queue"})
    known = {"If-None-Match": page.headers["etag"]}
    assert live_service.client.get(JOBS, params={"order": "queue"}, headers=known).status_code == 304
    submit(live_service, priority="urgent")
    assert places(live_service, limit=2) == [(5, 1), (2, 2)]
