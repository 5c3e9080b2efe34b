"""Waiting jobs in the order of the queue, over real HTTP, on both databases."""

import random
from typing import Any

import pytest
from sqlalchemy import insert, update

from service.db.models import Job, Project, User
from service.queue import waiting_jobs
from tests.support.live import Live
from tests.support.specs import spec
from torchyard.ids import now_us

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


def test_those_of_a_user_a_project_or_a_tag_keep_their_places(
    live_service: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_jobs, "CHUNK", 3)  # several looks at this little queue
    chance = random.Random(3)
    with live_service.context.db.write() as tx:
        tx.execute(insert(User), [{"id": f"user-{name}", "name": name, "created_us": 1} for name in ("ada", "bob")])
        tx.execute(insert(Project), [{"name": name, "created_us": 1} for name in ("red", "blue")])
    for _ in range(24):
        submit(live_service, priority=chance.choice(["low", "normal", "high"]), tags=chance.sample(["x", "y"], 1))
    of = {number: (chance.choice(["ada", "bob"]), chance.choice(["red", "blue"])) for number in range(1, 25)}
    with live_service.context.db.write() as tx:
        for number, (user, project) in of.items():
            changed = {"user_id": f"user-{user}", "project": project, "last_event": 2}
            tx.execute(update(Job).where(Job.number == number).values(**changed, changed_us=now_us()))
    queue = places(live_service)
    tagged = {job["number"]: job["tags"] for job in live_service.client.get(JOBS).json()["items"]}
    for name in ("ada", "bob"):
        own = [placed for placed in queue if of[placed[0]][0] == name]
        assert places(live_service, user=name) == own
        assert places(live_service, user=name, limit=4, cursor=str(own[1][1])) == own[2:6]
        assert places(live_service, user=name, offset=3, limit=2) == own[3:5]
        red = [placed for placed in own if of[placed[0]][1] == "red"]
        assert places(live_service, user=name, project="red") == red
        both = [placed for placed in red if tagged[placed[0]] == ["x"]]
        assert places(live_service, user=name, project="red", tag="x") == both
    assert places(live_service, project="blue") == [placed for placed in queue if of[placed[0]][1] == "blue"]
    assert places(live_service, tag="y", limit=5) == [placed for placed in queue if tagged[placed[0]] == ["y"]][:5]
    assert places(live_service, user="nobody") == []
