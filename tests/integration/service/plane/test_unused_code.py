"""Snapshots of code that no job needs, against a running service."""

from typing import Any

import httpx
from sqlalchemy import select, update

from service.artifacts import unused_code
from service.db.models import Blob, Snapshot
from tests.support.plane import Plane, sha256
from tests.support.problems import kind
from tests.support.snapshots import snapshot
from tests.support.specs import spec

API = "/api/v1"


def submit(client: httpx.Client, code: str) -> str:
    answer = client.post(f"{API}/jobs", json=spec(code=code, resources={"gpus": 0}))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def prune(client: httpx.Client, *, discarded: bool = False) -> Any:
    answer = client.post(f"{API}/snapshots/prune", json={"discarded": discarded})
    assert answer.status_code == 200, answer.text
    return answer.json()


def age(plane: Plane) -> None:
    """Makes all snapshots older than those that a submission may be about to name."""
    with plane.ctx.db.write() as tx:
        tx.execute(update(Snapshot).values(created_us=Snapshot.created_us - unused_code.YOUNG_US - 1))


def blobs(plane: Plane) -> set[str]:
    with plane.ctx.db.read() as tx:
        return set(tx.scalars(select(Blob.sha256)))


def test_snapshots_without_a_job_go_and_those_with_one_stay(data_plane: Plane) -> None:
    client = data_plane.live.client
    unused, used = snapshot(client, b"unused"), snapshot(client, b"used")
    submit(client, used)
    assert prune(client) == {"snapshots": 0, "size": 0}, "a job may be about to name it"
    age(data_plane)
    with data_plane.ctx.db.read() as tx:
        assert set(tx.scalars(select(Snapshot.id))) == {unused, used}
    assert prune(client, discarded=True) == {"snapshots": 1, "size": len(b"unused")}
    assert blobs(data_plane) == {sha256(b"used")}
    assert prune(client) == {"snapshots": 0, "size": 0}
    (entry,) = client.get(f"{API}/audit", params={"action": "snapshot.prune"}).json()["items"]
    assert entry["subject"] == "1 snapshots"
    assert kind(client.post(f"{API}/jobs", json=spec(code=unused))) == (422, "invalid-request")


def test_a_snapshot_that_is_named_again_is_young(data_plane: Plane) -> None:
    client = data_plane.live.client
    code = snapshot(client, b"again")
    age(data_plane)
    manifest = {"files": [{"path": "train.py", "size": len(b"again"), "sha256": sha256(b"again")}]}
    assert client.post(f"{API}/snapshots", json=manifest).json()["committed"]
    assert prune(client) == {"snapshots": 0, "size": 0}
    submit(client, code)


def test_the_code_of_discarded_jobs_goes_when_it_is_asked_for(data_plane: Plane) -> None:
    client = data_plane.live.client
    code = snapshot(client, b"print(1)")
    job, other = submit(client, code), submit(client, code)
    for each in (job, other):
        assert client.post(f"{API}/jobs/{each}/cancel").status_code == 200
    assert client.post(f"{API}/jobs/{job}/discard").status_code == 200
    age(data_plane)
    assert prune(client, discarded=True)["snapshots"] == 0, "the other job has its files still"
    assert client.post(f"{API}/jobs/{other}/discard").status_code == 200
    assert prune(client)["snapshots"] == 0
    assert client.post(f"{API}/jobs/{job}/rerun", json={}).status_code == 201
    for each in client.get(f"{API}/jobs", params={"state": "queued"}).json()["items"]:
        client.post(f"{API}/jobs/{each['id']}/cancel").raise_for_status()
        client.post(f"{API}/jobs/{each['id']}/discard").raise_for_status()
    assert prune(client, discarded=True) == {"snapshots": 1, "size": len(b"print(1)")}
    assert blobs(data_plane) == set()
    refused = client.post(f"{API}/jobs/{job}/rerun", json={})
    assert refused.status_code == 422
    assert "submit it again from its folder" in refused.text


def test_nobody_removes_what_is_anothers(data_plane: Plane) -> None:
    client = data_plane.live.client
    snapshot(client, b"the administrator's")
    age(data_plane)
    client.post(f"{API}/users", json={"name": "grace"}).raise_for_status()
    token = client.post(f"{API}/tokens", json={"name": "t", "scopes": ["submit"], "user": "grace"}).json()["secret"]
    with data_plane.live.as_token(token) as grace:
        assert prune(grace, discarded=True) == {"snapshots": 0, "size": 0}
    assert blobs(data_plane) == {sha256(b"the administrator's")}
