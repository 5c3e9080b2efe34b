"""What the dashboard asks for beside lists: counts of jobs by state, telemetry of a node."""

from sqlalchemy import insert

from service.db.models import Sample
from service.jobs import find
from tests.support import box
from tests.support.live import Live, live_service, serve, yard_home  # noqa: F401  fixtures
from tests.support.specs import spec


def test_counts_follow_the_filters(live_service: Live) -> None:  # noqa: F811
    client = live_service.client
    for project in ("default", "default", "vision"):
        client.post("/api/v1/jobs", json=spec(project=project)).raise_for_status()
    last = client.get("/api/v1/jobs?limit=1").json()["items"][0]["id"]
    client.post(f"/api/v1/jobs/{last}/cancel").raise_for_status()
    counted = client.get("/api/v1/jobs/counts").raise_for_status()
    assert counted.json()["states"] == {"queued": 2, "cancelled": 1}
    assert client.get("/api/v1/jobs/counts?project=vision").json() == {
        "states": {"cancelled": 1},
        "most": find.MOST,
        "more": [],
    }
    again = client.get("/api/v1/jobs/counts", headers={"If-None-Match": counted.headers["ETag"]})
    assert again.status_code == 304


def test_a_node_tells_its_telemetry(live_service: Live) -> None:  # noqa: F811
    box.add_node(live_service.context.db, "box", 1, last_seen_us=live_service.context.now_us())
    now = live_service.context.now_us()
    values = {"cpu.percent": 12.5}
    with live_service.context.db.write() as tx:
        tx.execute(insert(Sample), [{"node": "box", "attempt_id": "", "time_us": now, "values": values}])
    found = live_service.client.get("/api/v1/nodes/box/telemetry").raise_for_status().json()
    assert [(one["name"], one["points"][0][2]) for one in found["series"]] == [("cpu.percent", 12.5)]
