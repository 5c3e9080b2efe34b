import threading
from typing import Any

import pytest
from sqlalchemy import event, func, insert, select, update

from service.artifacts import discard
from service.artifacts.housekeeping import DAY_US
from service.context import Context
from service.db.models import Blob, Group, Job, LogTime, MetricPoint, Node, Stacks, Tag, User
from tests.support.plane import Plane, Seeded, batch, sha256
from torchyard import wire
from torchyard.ids import new_id
from torchyard.quantities import format_size

STACKS = {"at_us": 1, "dump": {"serial": 1, "at_us": 1, "node_rank": 0, "processes": []}}


def ended(plane: Plane, state: str = "succeeded", **spec: Any) -> Seeded:
    """A job that has left something of every kind."""
    seeded = plane.job(checkpoint={"keep_last": 9}, **spec)
    name = seeded.job.encode()
    assert plane.log(seeded, 0, b"epoch 1\n").status_code == 200
    assert plane.post(seeded, "metrics", batch(0, range(30), loss=0.5, lr=lambda step: step)).status_code == 200
    plane.checkpoint(seeded, 10, {"model.pt": b"model of " + name, "same.pt": b"in every job"})
    output = b"output of " + name
    refs = [wire.FileRef(path="result.csv", size=len(output), sha256=sha256(output))]
    assert plane.post(seeded, "outputs", wire.OutputReport(files=refs)).status_code == 200
    plane.put(output)
    with plane.ctx.db.write() as tx:
        tx.execute(insert(Stacks).values(attempt_id=seeded.attempt, node_rank=0, serial=1, **STACKS))
        tx.execute(update(Job).where(Job.id == seeded.job).values(ended_us=plane.ctx.now_us()))
    plane.set_state(seeded, state, settled=True)
    return seeded


def ask(plane: Plane, seeded: Seeded) -> Any:
    return plane.live.client.post(f"/api/v1/jobs/{seeded.job}/discard")


def holds(plane: Plane, seeded: Seeded) -> dict[str, Any]:
    """What there is of a job, by kind."""
    found = {
        name: plane.get(f"/jobs/{seeded.job}/{name}").json() for name in ("outputs", "checkpoints", "logs/streams")
    }
    found["points"] = [one["points"] for one in plane.get(f"/jobs/{seeded.job}/metrics").json()["series"]]
    found["stacks"] = plane.get(f"/jobs/{seeded.job}/stacks").json()
    with plane.ctx.db.read() as tx:
        found["log times"] = tx.scalar(
            select(func.count()).select_from(LogTime).where(LogTime.attempt_id == seeded.attempt)
        )
    found["log"] = plane.get(f"/jobs/{seeded.job}/logs").text
    return found


def points(plane: Plane) -> int:
    with plane.ctx.db.read() as tx:
        return tx.scalar(select(func.count()).select_from(MetricPoint)) or 0


def blobs(plane: Plane) -> set[str]:
    with plane.ctx.db.read() as tx:
        return set(tx.scalars(select(Blob.sha256)))


def kinds(plane: Plane, seeded: Seeded) -> list[str]:
    return [event["kind"] for event in plane.get(f"/jobs/{seeded.job}/events").json()["items"]]


def test_the_files_of_one_job_go_and_its_story_stays(data_plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discard, "_POINTS", 7)  # several transactions, which end within a series
    gone, other = ended(data_plane), ended(data_plane)
    before = data_plane.get(f"/jobs/{gone.job}").json()
    assert before["discarded_at"] is None
    assert all(holds(data_plane, gone).values())
    metrics_tag = data_plane.get(f"/jobs/{gone.job}/metrics").headers["ETag"]
    answer = ask(data_plane, gone)
    assert answer.status_code == 200, answer.text
    assert not any(holds(data_plane, gone).values())
    assert all(holds(data_plane, other).values())
    after = answer.json()
    assert after["discarded_at"] is not None
    assert after["storage"] == {"checkpoints": 0, "outputs": 0, "logs": 0, "saved": True}
    assert after["latest"] == before["latest"] == {"loss": 0.5, "lr": 29}
    assert (after["spec"], after["state"]) == (before["spec"], "succeeded")
    size = sum(before["storage"][kind] for kind in ("checkpoints", "outputs", "logs"))
    (event,) = (e for e in data_plane.get(f"/jobs/{gone.job}/events").json()["items"] if e["kind"] == "discarded")
    assert event["data"] == {"bytes": size, "size": format_size(size), "why": ""}
    assert event["actor"] == data_plane.get("/settings").json()["user"]["name"]
    assert points(data_plane) == 60
    assert not (data_plane.ctx.store.logs / gone.attempt).exists()
    model = b"model of " + other.job.encode(), b"output of " + other.job.encode(), b"in every job"
    assert blobs(data_plane) == set(map(sha256, model))
    unchanged = {"If-None-Match": metrics_tag}
    assert data_plane.get(f"/jobs/{gone.job}/metrics", headers=unchanged).status_code == 200
    assert ask(data_plane, gone).status_code == 200
    assert kinds(data_plane, gone).count("discarded") == 1
    rerun = data_plane.live.client.post(f"/api/v1/jobs/{gone.job}/rerun", json={"changes": {"resources": {"gpus": 0}}})
    assert rerun.status_code == 201, rerun.text


def test_what_still_runs_arrives_or_is_needed_is_left_alone(data_plane: Plane) -> None:
    running = data_plane.job()
    arriving, needed, trial = ended(data_plane), ended(data_plane), ended(data_plane, "failed")
    data_plane.set_state(arriving, "succeeded", settled=False)
    (checkpoint,) = data_plane.get(f"/jobs/{needed.job}/checkpoints").json()
    waiting, other = data_plane.job(state="queued", restore=checkpoint["id"]), data_plane.job()
    group = {"project": "default", "name": "sweep", "sweep": {}, "size": 2, "created_us": 1}
    with data_plane.ctx.db.write() as tx:
        user = tx.scalar(select(User.id).limit(1))
        tx.execute(insert(Group).values(id="group", number=9, user_id=user, **group))
        tx.execute(update(Job).where(Job.id.in_([trial.job, other.job])).values(group_id="group"))
    for seeded, words in (
        (running, "cancel it first"),
        (arriving, "still arrive"),
        (needed, "starts from a checkpoint"),
        (trial, "other trials of its sweep"),
    ):
        answer = ask(data_plane, seeded)
        assert (answer.status_code, words in answer.json()["detail"]) == (409, True), answer.text
    sweep(data_plane.ctx, 365, keep_days=90)
    assert all(all(holds(data_plane, seeded).values()) for seeded in (arriving, needed, trial))
    for seeded in (waiting, other):
        data_plane.set_state(seeded, "cancelled", settled=True)
    with data_plane.ctx.db.write() as tx:  # that node is away, and nobody knows whether it comes back
        tx.execute(update(Node).values(unreachable=True))
    for seeded in (arriving, needed, trial):
        assert ask(data_plane, seeded).status_code == 200
        assert not any(holds(data_plane, seeded).values())


def sweep(ctx: Context, days: float = 0, keep_days: int | None = None) -> None:
    """A round of housekeeping so much later, by a service that keeps files for so long."""
    keep_s = None if keep_days is None else keep_days * 86_400
    discard.sweep(ctx.db, ctx.store, ctx.now_us() + round(days * DAY_US), keep_s)


def test_old_jobs_go_by_themselves_unless_somebody_keeps_them(data_plane: Plane) -> None:
    old, kept = ended(data_plane), ended(data_plane)
    with data_plane.ctx.db.write() as tx:
        tx.execute(insert(Tag).values(job_id=kept.job, tag="keep", number=1))
    for days, keep_days in ((9999, None), (89, 90)):
        sweep(data_plane.ctx, days, keep_days)
        assert all(holds(data_plane, old).values())
    sweep(data_plane.ctx, 91, 90)
    assert not any(holds(data_plane, old).values())
    assert all(holds(data_plane, kept).values())
    (event,) = (e for e in data_plane.get(f"/jobs/{old.job}/events").json()["items"] if e["kind"] == "discarded")
    assert event["actor"] is None
    assert "ended 90d ago" in event["message"]


def test_what_a_killed_service_has_left_goes_later(data_plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    seeded = ended(data_plane)
    with monkeypatch.context() as killed:
        killed.setattr(discard, "_remove", lambda _db, _store, _jobs: None)
        assert ask(data_plane, seeded).status_code == 200
    assert points(data_plane) == 60
    assert not any(holds(data_plane, seeded).values()), "nobody sees half of it"
    sweep(data_plane.ctx)
    assert points(data_plane) == 0
    assert not (data_plane.ctx.store.logs / seeded.attempt).exists()
    data_plane.log(seeded, 0, b"from a node that was lost")
    sweep(data_plane.ctx)
    assert holds(data_plane, seeded)["log"] == "from a node that was lost"


def test_only_the_owner_and_administrators_discard(data_plane: Plane) -> None:
    seeded, client = ended(data_plane), data_plane.live.client
    client.post("/api/v1/users", json={"name": f"eve-{new_id('x')[-6:].lower()}"})
    (eve,) = (user["name"] for user in client.get("/api/v1/users").json() if user["name"].startswith("eve-"))
    client.put(f"/api/v1/projects/default/members/{eve}")
    token = client.post("/api/v1/tokens", json={"user": eve, "name": "t", "scopes": ["read", "submit"]}).json()
    with data_plane.live.as_token(token["secret"]) as other:
        assert other.post(f"/api/v1/jobs/{seeded.job}/discard").status_code == 403
    assert all(holds(data_plane, seeded).values())


def test_a_round_reads_no_more_often_the_more_were_discarded(data_plane: Plane) -> None:
    db, own, asked = data_plane.ctx.db, threading.get_ident(), list[str]()

    def listen(*call: Any) -> None:
        if threading.get_ident() == own:
            asked.append(call[2])

    event.listen(db.engine, "before_cursor_execute", listen)
    often = []
    for count in (1, 4):
        jobs = [data_plane.job().job for _ in range(count)]
        with db.write() as tx:
            tx.execute(update(Job).where(Job.id.in_(jobs)).values(discarded_us=data_plane.ctx.now_us()))
        asked.clear()
        sweep(data_plane.ctx)
        often.append(len(asked))
    event.remove(db.engine, "before_cursor_execute", listen)
    assert often[0] == often[1]
