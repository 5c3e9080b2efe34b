from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from service.artifacts import snapshots
from service.db.models import Blob, SnapshotFile
from tests.support.plane import Plane, sha256


def manifest(**files: bytes) -> dict[str, Any]:
    return {"files": [{"path": path, "size": len(data), "sha256": sha256(data)} for path, data in files.items()]}


def create(client: httpx.Client, body: dict[str, Any]) -> Any:
    answer = client.post("/api/v1/snapshots", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def put(client: httpx.Client, snapshot: str, data: bytes, name: str | None = None) -> httpx.Response:
    return client.put(f"/api/v1/snapshots/{snapshot}/blobs/{name or sha256(data)}", content=data)


def commit(client: httpx.Client, snapshot: str) -> httpx.Response:
    return client.post(f"/api/v1/snapshots/{snapshot}/commit")


@pytest.fixture
def client(data_plane: Plane) -> httpx.Client:
    return data_plane.live.client


def test_manifest_blobs_commit(data_plane: Plane, client: httpx.Client) -> None:
    body = manifest(a=b"print(1)", b=b"print(2)", c=b"print(1)")
    body["files"][1]["mode"] = 0o4777
    made = create(client, body)
    assert made["missing"] == sorted([sha256(b"print(1)"), sha256(b"print(2)")])
    assert commit(client, made["id"]).status_code == 409
    assert put(client, made["id"], b"print(1)").status_code == 204
    assert create(client, body) == {"id": made["id"], "missing": [sha256(b"print(2)")], "committed": False}
    assert put(client, made["id"], b"print(2)").status_code == 204
    for _ in range(2):
        assert commit(client, made["id"]).json() == {"id": made["id"], "missing": [], "committed": True}
    reordered = {"files": body["files"][::-1]}
    assert create(client, reordered) == {"id": made["id"], "missing": [], "committed": True}
    with data_plane.ctx.db.read() as tx:
        refs = snapshots.files(tx, made["id"])
    assert [(ref.path, ref.mode) for ref in refs] == [("a", 0o644), ("b", 0o755), ("c", 0o644)]


def test_another_users_blob_must_be_uploaded_again(data_plane: Plane, client: httpx.Client) -> None:
    """A hash alone opens nobody's file."""
    body = manifest(secret=b"the admin's code")
    mine = create(client, body)
    put(client, mine["id"], b"the admin's code")
    commit(client, mine["id"])
    with other_user(data_plane) as other:
        theirs = create(other, body)
        assert theirs["id"] != mine["id"]
        assert theirs["missing"] == [sha256(b"the admin's code")]
        assert commit(other, theirs["id"]).status_code == 409
        assert commit(other, mine["id"]).status_code == 404
        assert put(other, mine["id"], b"the admin's code").status_code == 404
        assert put(other, theirs["id"], b"the admin's code").status_code == 204
        assert commit(other, theirs["id"]).status_code == 200


def other_user(plane: Plane) -> httpx.Client:
    plane.live.client.post("/api/v1/users", json={"name": "grace"})
    body = {"name": "t", "scopes": ["submit"], "user": "grace"}
    return plane.live.as_token(plane.live.client.post("/api/v1/tokens", json=body).json()["secret"])


def test_only_what_was_announced_is_taken(data_plane: Plane, client: httpx.Client) -> None:
    made = create(client, manifest(a=b"announced"))
    assert put(client, made["id"], b"other").status_code == 404
    assert put(client, made["id"], b"falsified", sha256(b"announced")).status_code == 422
    assert put(client, made["id"], b"announced, and more", sha256(b"announced")).status_code == 413
    assert put(client, "snap-none", b"announced").status_code == 404
    with data_plane.ctx.db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(Blob)) == 0
    assert [path.name for path in data_plane.ctx.store.inbox.iterdir()] == ["probe"]


def test_a_manifest_that_lies_about_sizes_is_not_committed(client: httpx.Client) -> None:
    body = manifest(a=b"12345")
    body["files"][0]["size"] = 6
    made = create(client, body)
    put(client, made["id"], b"12345")
    answer = commit(client, made["id"])
    assert answer.status_code == 422
    assert "not as large" in answer.json()["detail"]


def test_bad_manifests_are_refused_and_nothing_is_stored(data_plane: Plane, client: httpx.Client) -> None:
    good = {"path": "a", "size": 1, "sha256": sha256(b"a")}
    bad = [
        [],
        [good, good],
        [good, {**good, "path": "a/b"}],
        [{**good, "path": "../a"}],
        [{**good, "size": -1}],
        [{**good, "sha256": "x"}],
        [{**good, "size": snapshots.MAX_BYTES + 1}],
        [{**good, "path": f"f{n}"} for n in range(snapshots.MAX_FILES + 1)],
    ]
    for files in bad:
        answer = client.post("/api/v1/snapshots", json={"files": files})
        assert answer.status_code == 422, answer.text
        assert answer.json()["detail"]
    with data_plane.ctx.db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(SnapshotFile)) == 0
    assert data_plane.node.post("/api/v1/snapshots", json={"files": [good]}).status_code == 403


def test_the_largest_manifest_is_taken(client: httpx.Client) -> None:
    files = [{"path": f"d{n % 100}/f{n}", "size": 1, "sha256": sha256(b"%d" % n)} for n in range(snapshots.MAX_FILES)]
    assert len(create(client, {"files": files})["missing"]) == snapshots.MAX_FILES


def test_the_files_of_a_job_are_read_by_whoever_reads_the_job(data_plane: Plane, client: httpx.Client) -> None:
    made = create(client, manifest(**{"train.py": b"print(1)", "lib/a.py": b"print(2)"}))
    for data in (b"print(1)", b"print(2)"):
        assert put(client, made["id"], data).status_code == 204
    commit(client, made["id"])
    seeded, bare = data_plane.job(code=made["id"]), data_plane.job()
    listed = data_plane.get(f"/jobs/{seeded.job}/code").json()
    assert [(each["path"], each["size"], each["sha256"]) for each in listed] == [
        ("lib/a.py", 8, sha256(b"print(2)")),
        ("train.py", 8, sha256(b"print(1)")),
    ]
    assert data_plane.get(f"/jobs/{seeded.job}/code/lib/a.py").content == b"print(2)"
    assert data_plane.get(f"/jobs/{seeded.job}/code/none.py").status_code == 404
    assert data_plane.get(f"/jobs/{bare.job}/code").json() == []
    assert data_plane.get("/jobs/job-none/code").status_code == 404
