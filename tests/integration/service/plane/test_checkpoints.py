import http.client
import os
from typing import Any
from urllib.parse import quote

import httpx
from sqlalchemy import func, insert, select, update

from service.artifacts import housekeeping
from service.artifacts.housekeeping import DAY_US
from service.db.models import Blob, Checkpoint, CheckpointFile, Event, Job, Node, Outage, Sample
from service.storage import retention
from tests.support.plane import Plane, Seeded, sha256
from tests.support.problems import kind
from torchyard import wire


def listed(plane: Plane, seeded: Seeded) -> list[dict[str, Any]]:
    answer = plane.get(f"/jobs/{seeded.job}/checkpoints")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def blobs(plane: Plane) -> set[str]:
    """Hashes of the blobs; rows and files agree."""
    with plane.ctx.db.read() as tx:
        rows = set(tx.scalars(select(Blob.sha256)))
    assert rows == {path.name for path in plane.ctx.store.blobs.glob("??/*")}
    return rows


def files(*words: str) -> dict[str, bytes]:
    return {f"{word}.pt": word.encode() * 100 for word in words}


def test_the_way_of_a_checkpoint(data_plane: Plane) -> None:
    seeded, content = data_plane.job(), files("model", "optim")
    first = data_plane.report(seeded, 7, content, hashed=False, loss=0.5)
    assert (first.missing, first.remove) == ([], [])
    assert [(c["state"], c["step"], c["size"]) for c in listed(data_plane, seeded)] == [("committed", 7, 1000)]
    hashed = data_plane.report(seeded, 7, content, loss=0.5)
    assert hashed.missing == sorted(map(sha256, content.values()))
    data_plane.put(content["model.pt"])
    assert data_plane.report(seeded, 7, content).missing == [sha256(content["optim.pt"])]
    placed = f"{sha256(content['optim.pt'])}.abc"
    (data_plane.ctx.store.inbox / placed).write_bytes(content["optim.pt"])
    message = wire.Placed(placed=placed, size=500)
    url = f"/api/v1/agent/blobs/{sha256(content['optim.pt'])}"
    assert data_plane.node.post(url, content=message.model_dump_json()).status_code == 204
    for _ in range(2):
        answer = data_plane.report(seeded, 7, content)
        assert (answer.checkpoint, answer.missing, answer.remove) == (first.checkpoint, [], ["step-000000007"])
    (found,) = listed(data_plane, seeded)
    assert (found["state"], found["metrics"], found["attempt"]) == ("stored", {"loss": 0.5}, 1)
    assert [file["name"] for file in found["files"]] == ["model.pt", "optim.pt"]
    assert data_plane.get(f"/checkpoints/{found['id']}").json() == found
    with data_plane.ctx.db.read() as tx:
        events = list(tx.scalars(select(Event.message).where(Event.job_id == seeded.job).order_by(Event.seq)))
    assert events == ["checkpoint of step 7 written", "checkpoint of step 7 stored (1000 B)"]


def test_keep_last_and_keep_best_are_enforced_on_each_stored_checkpoint(data_plane: Plane) -> None:
    policy = {"keep_last": 2, "keep_best": {"metric": "acc", "mode": "max"}}
    seeded = data_plane.job(checkpoint=policy)
    for step, accuracy in ((10, 0.9), (20, 0.1), (30, 0.2), (40, "nan"), (50, 0.3)):
        data_plane.checkpoint(seeded, step, {"state.pt": b"%d" % step, "same.pt": b"shared"}, acc=accuracy)
    assert [(c["step"], c["best"]) for c in listed(data_plane, seeded)] == [(10, True), (40, False), (50, False)]
    assert blobs(data_plane) == {sha256(data) for data in (b"10", b"40", b"50", b"shared")}
    with data_plane.ctx.db.read() as tx:
        held = retention.storage(tx, [seeded.job])[seeded.job]
    assert (held.checkpoints, held.saved) == (3 * 8, True)


def test_blobs_that_something_else_needs_stay(data_plane: Plane) -> None:
    seeded, other = data_plane.job(checkpoint={"keep_last": 1}), data_plane.job()
    data_plane.checkpoint(other, 1, {"a": b"of another job"})
    refs = [wire.FileRef(path="out", size=9, sha256=sha256(b"an output"))]
    data_plane.post(seeded, "outputs", wire.OutputReport(files=refs))
    data_plane.put(b"an output")
    data_plane.checkpoint(seeded, 1, {"a": b"of another job", "b": b"an output", "c": b"own"})
    data_plane.checkpoint(seeded, 2, {"a": b"newer"})
    assert blobs(data_plane) == {sha256(data) for data in (b"of another job", b"an output", b"newer")}


def test_a_checkpoint_that_newer_ones_have_overtaken_need_not_be_brought(data_plane: Plane) -> None:
    seeded = data_plane.job(checkpoint={"keep_last": 1})
    data_plane.report(seeded, 10, {"a": b"old"}, hashed=False)
    data_plane.checkpoint(seeded, 20, {"a": b"new"})
    answer = data_plane.report(seeded, 10, {"a": b"old"})
    assert (answer.missing, answer.remove) == ([], ["step-000000010", "step-000000020"])
    assert [c["step"] for c in listed(data_plane, seeded)] == [20]


def test_a_checkpoint_that_a_job_waits_for_is_pinned(data_plane: Plane) -> None:
    seeded = data_plane.job(checkpoint={"keep_last": 1})
    wanted = data_plane.checkpoint(seeded, 10, {"a": b"10"}).checkpoint
    rerun = data_plane.job(state="queued", restore=wanted)
    data_plane.checkpoint(seeded, 20, {"a": b"20"})
    data_plane.checkpoint(seeded, 30, {"a": b"30"})
    assert [(c["step"], c["pinned"]) for c in listed(data_plane, seeded)] == [(10, True), (30, False)]
    url = f"/api/v1/checkpoints/{wanted}"
    refused = data_plane.live.client.delete(url)
    assert (refused.status_code, refused.json()["type"].rpartition("/")[2]) == (409, "conflict")
    data_plane.set_state(rerun, "running")
    assert data_plane.live.client.delete(url).status_code == 409, "it has no checkpoint of its own yet"
    data_plane.checkpoint(rerun, 11, {"a": b"11"})
    assert data_plane.live.client.delete(url).status_code == 204
    assert data_plane.live.client.delete(url).status_code == 404
    assert sha256(b"10") not in blobs(data_plane)


def test_the_only_verified_checkpoint_goes_only_when_its_job_is_over(data_plane: Plane) -> None:
    seeded = data_plane.job()
    only = data_plane.checkpoint(seeded, 10, {"a": b"10"}).checkpoint
    assert [c["pinned"] for c in listed(data_plane, seeded)] == [True]
    assert data_plane.live.client.delete(f"/api/v1/checkpoints/{only}").status_code == 409
    data_plane.set_state(seeded, "succeeded")
    assert data_plane.live.client.delete(f"/api/v1/checkpoints/{only}").status_code == 204
    assert listed(data_plane, seeded) == []
    assert blobs(data_plane) == set()
    assert data_plane.report(seeded, 10, {"a": b"10"}).remove == ["step-000000010"]


def other_user(plane: Plane, *scopes: str) -> httpx.Client:
    plane.live.client.post("/api/v1/users", json={"name": "grace"})
    plane.live.client.put("/api/v1/projects/default/members/grace")
    body = {"name": "t", "scopes": list(scopes), "user": "grace"}
    answer = plane.live.client.post("/api/v1/tokens", json=body)
    assert answer.status_code == 201, answer.text
    return plane.live.as_token(answer.json()["secret"])


def test_members_of_the_project_may_read_but_not_delete(data_plane: Plane) -> None:
    seeded = data_plane.job()
    checkpoint = data_plane.checkpoint(seeded, 10, {"a": b"10"}).checkpoint
    data_plane.set_state(seeded, "succeeded")
    with other_user(data_plane, "submit") as client:
        assert client.get(f"/api/v1/checkpoints/{checkpoint}/files/a").content == b"10"
        assert client.delete(f"/api/v1/checkpoints/{checkpoint}").status_code == 403
    url = f"/api/v1/checkpoints/{checkpoint}/files/a"
    assert data_plane.live.anonymous.get(url).status_code == 401
    assert data_plane.node.get(url).status_code == 403


def test_files_are_downloaded_whole_or_in_ranges(data_plane: Plane) -> None:
    seeded, data = data_plane.job(), os.urandom(200_000)
    name = 'sub dir/ünï"code;\n.pt'
    checkpoint = data_plane.checkpoint(seeded, 1, {name: data, "empty": b""}).checkpoint
    url = f"/api/v1/checkpoints/{checkpoint}/files/{quote(name)}"
    client = data_plane.live.client
    whole = client.get(url)
    assert whole.content == data
    assert whole.headers["etag"] == f'"{sha256(data)}"'
    assert whole.headers["content-type"] == "application/octet-stream"
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert "\n" not in whole.headers["content-disposition"]
    assert whole.headers["content-disposition"].startswith("attachment; filename*=utf-8''")
    part = client.get(url, headers={"Range": "bytes=100-299"})
    assert (part.status_code, part.content) == (206, data[100:300])
    assert part.headers["content-range"] == "bytes 100-299/200000"
    assert client.get(url, headers={"Range": "bytes=199990-"}).content == data[-10:]
    assert client.get(url, headers={"Range": "bytes=-10"}).content == data[-10:]
    tag = whole.headers["etag"]
    assert client.get(url, headers={"Range": "bytes=0-9", "If-Range": tag}).content == data[:10]
    assert client.get(url, headers={"Range": "bytes=0-9", "If-Range": '"x"'}).content == data
    assert client.get(url, headers={"If-None-Match": tag}).status_code == 304
    for wrong in ("bytes=200000-", "bytes=9-3", "bytes=-0"):
        answer = client.get(url, headers={"Range": wrong})
        assert answer.status_code == 416
        assert answer.headers["content-range"] == "bytes */200000"
        assert answer.headers["content-type"] == "application/problem+json"
    assert client.get(url, headers={"Range": "lines=1-2"}).status_code == 422
    empty = f"/api/v1/checkpoints/{checkpoint}/files/empty"
    assert client.get(empty).content == b""
    assert client.get(empty, headers={"Range": "bytes=0-"}).status_code == 416


TRICKS = ["../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/x", "/etc/passwd", "a%00", "a/", "./a", ""]


def test_path_tricks_find_nothing(data_plane: Plane) -> None:
    seeded = data_plane.job()
    checkpoint = data_plane.checkpoint(seeded, 1, {"a": b"1"}).checkpoint
    folders = (f"/checkpoints/{checkpoint}/files", f"/jobs/{seeded.job}/outputs")
    for url in (f"{folder}/{name}" for folder in folders for name in TRICKS):
        status, content = raw_get(data_plane, f"/api/v1{url}")
        assert status in (404, 422), content
        assert b"root:" not in content


def raw_get(plane: Plane, path: str) -> tuple[int, bytes]:
    """A request whose path is sent as it is: httpx would tidy it."""
    connection = http.client.HTTPConnection(plane.live.client.base_url.host, plane.live.client.base_url.port)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {plane.live.admin_token}"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_bad_names_are_refused_and_nothing_is_stored(data_plane: Plane) -> None:
    seeded = data_plane.job()
    for path in ("../x", "/x", "a/../../x", "a\0", "", ".", "a//b"):
        ref = wire.FileRef(path=path, size=1, sha256=sha256(b"1"))
        bad_file = wire.CheckpointFile(path=path, size=1, sha256=sha256(b"1"))
        good_file = bad_file.model_copy(update={"path": "a"})
        answers = [
            data_plane.post(seeded, "outputs", wire.OutputReport(files=[ref])),
            data_plane.post(seeded, "checkpoints", report_of("n", bad_file)),
            data_plane.post(seeded, "checkpoints", report_of(path, good_file)),
            data_plane.live.client.post("/api/v1/snapshots", json={"files": [ref.model_dump()]}),
        ]
        assert [answer.status_code for answer in answers] == [422] * 4
        assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}
    with data_plane.ctx.db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(CheckpointFile)) == 0


def report_of(name: str, file: wire.CheckpointFile) -> wire.CheckpointReport:
    return wire.CheckpointReport(name=name, step=1, created_us=1, files=[file])


def test_blobs_have_hashes_for_names(data_plane: Plane) -> None:
    for name in ("x" * 64, "../" + "a" * 61, "A" * 64, "a" * 63):
        content = wire.Placed(placed=f"{name}.x", size=1).model_dump_json()
        url = f"/api/v1/agent/blobs/{name}"
        node = data_plane.node
        answers = [node.put(url, content=b"x"), node.get(url), node.post(url, content=content)]
        assert {answer.status_code for answer in answers} <= {404, 405, 422}
    assert blobs(data_plane) == set()


def test_a_blob_with_another_hash_is_refused(data_plane: Plane) -> None:
    url = f"/api/v1/agent/blobs/{sha256(b'announced')}"
    assert data_plane.node.put(url, content=b"other").status_code == 422
    assert data_plane.node.get(url).status_code == 404
    assert data_plane.node.put(url, content=b"announced").status_code == 204
    assert blobs(data_plane) == {sha256(b"announced")}


def test_outputs_are_listed_once_they_are_here(data_plane: Plane) -> None:
    seeded = data_plane.job()

    def report(**content: bytes) -> list[str]:
        refs = [wire.FileRef(path=f"out/{name}", size=len(data), sha256=sha256(data)) for name, data in content.items()]
        answer = data_plane.post(seeded, "outputs", wire.OutputReport(files=refs))
        return wire.Missing.model_validate_json(answer.content).missing

    assert report(a=b"1", b=b"2") == sorted([sha256(b"1"), sha256(b"2")])
    assert data_plane.get(f"/jobs/{seeded.job}/outputs").json() == []
    data_plane.put(b"1")
    data_plane.put(b"2")
    assert [o["name"] for o in data_plane.get(f"/jobs/{seeded.job}/outputs").json()] == ["out/a", "out/b"]
    assert data_plane.get(f"/jobs/{seeded.job}/outputs/out/b").content == b"2"
    assert report(a=b"3", b=b"2") == [sha256(b"3")]
    data_plane.put(b"3")
    assert data_plane.get(f"/jobs/{seeded.job}/outputs/out/a").content == b"3"
    assert blobs(data_plane) == {sha256(b"2"), sha256(b"3")}
    assert data_plane.get("/jobs/job-none/outputs").status_code == 404


def test_a_full_disk_takes_no_blobs(serve: Any) -> None:
    from tests.support import plane

    with serve(disk_floor=2**62) as live, plane.plane(live) as data_plane:
        answer = data_plane.put(b"data")
        assert kind(answer) == (507, "insufficient-storage")
        assert "delete checkpoints" in answer.json()["detail"]


def test_housekeeping_removes_what_is_old_or_abandoned(data_plane: Plane) -> None:
    seeded = data_plane.job()
    data_plane.checkpoint(seeded, 1, {"a": b"kept"})
    data_plane.report(seeded, 2, {"a": b"never came"}, hashed=False)
    data_plane.put(b"orphan")
    ref = {"path": "a", "size": 8, "sha256": sha256(b"snapshot")}
    made = data_plane.live.client.post("/api/v1/snapshots", json={"files": [ref]}).json()
    now = data_plane.ctx.now_us()
    samples = [wire.Sample(time_us=time, values={"a": 1.0}) for time in (now, now - 8 * DAY_US)]
    data_plane.node.post("/api/v1/agent/samples", content=wire.SampleBatch(samples=samples).model_dump_json())
    with data_plane.ctx.db.write() as tx:
        of = {"node": tx.scalar(select(Node.name)), "kind": "drain", "reason": "", "started_us": 1}
        for ended_us in (None, now, now - 8 * DAY_US):
            tx.execute(insert(Outage).values(**of, ended_us=ended_us))
    leftover = data_plane.ctx.store.inbox / ".upload-x"
    leftover.write_bytes(b"")
    housekeeping.sweep(data_plane.ctx.db, data_plane.ctx.store, data_plane.ctx.now_us())
    assert leftover.exists()
    assert sha256(b"orphan") in blobs(data_plane)

    os.utime(leftover, (1, 1))
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Blob).values(created_us=1))
        tx.exec_driver_sql(f"UPDATE snapshots SET created_us = 1 WHERE id = '{made['id']}'")
    data_plane.set_state(seeded, "failed", settled=True)
    housekeeping.sweep(data_plane.ctx.db, data_plane.ctx.store, data_plane.ctx.now_us())
    assert not leftover.exists()
    assert blobs(data_plane) == {sha256(b"kept")}
    assert data_plane.live.client.post(f"/api/v1/snapshots/{made['id']}/commit").status_code == 404
    with data_plane.ctx.db.read() as tx:
        assert list(tx.scalars(select(Sample.time_us))) == [now]
        assert list(tx.scalars(select(Outage.ended_us).order_by(Outage.id))) == [None, now]
        states = dict(tx.execute(select(Checkpoint.step, Checkpoint.state)).all())
        assert tx.scalar(select(Job.state).where(Job.id == seeded.job)) == "failed"
    assert states == {1: "stored", 2: "deleted"}
