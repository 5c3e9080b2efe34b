"""Files that a job writes anywhere below its folder: where they lie, by node, and what the next attempt finds."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import insert, update

from service.artifacts import outputs
from service.attempts import memory
from service.db.models import Attempt, Job, Member, MetricSeries
from service.lifecycle import carry, lock_job
from tests.support.plane import Plane, Seeded, sha256
from torchyard import home, wire
from torchyard.wire import Root

FAILED = {"kind": "exited", "exit_code": 1, "ended_us": 1}
KEPT = "/var/lib/torchyard/kept/att"


def written(path: str, data: bytes, root: str = "code", **more: Any) -> wire.WrittenFile:
    return wire.WrittenFile(path=path, size=len(data), sha256=sha256(data), root=Root(root), **more)


def tell(plane: Plane, seeded: Seeded, *files: wire.WrittenFile, node: str | None = None, **more: Any) -> wire.Missing:
    facts = memory.facts(plane.ctx.db, plane.ctx.memory, seeded.attempt)
    message = wire.OutputReport(files=more.pop("output", []), written=list(files), **more)
    return outputs.report(plane.ctx.db, plane.ctx.store, facts, message, node or home.node_name())


def listed(plane: Plane, seeded: Seeded, **params: Any) -> list[dict[str, Any]]:
    answer = plane.get(f"/jobs/{seeded.job}/outputs", params=params or {"all": "true"})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def launch(plane: Plane, seeded: Seeded) -> wire.Launch:
    answer = plane.node.get(f"/api/v1/agent/attempts/{seeded.attempt}")
    assert answer.status_code == 200, answer.text
    return wire.Launch.model_validate_json(answer.content)


def next_attempt(plane: Plane, seeded: Seeded, **values: Any) -> Seeded:
    """The job's next attempt, which begins with the files that the scheduler would give it."""
    with plane.ctx.db.write() as tx:
        tx.execute(update(Attempt).where(Attempt.id == seeded.attempt).values(started_us=1))
        tx.execute(
            update(Attempt).where(Attempt.id == seeded.attempt).values(**{"state": "failed", "result": FAILED} | values)
        )
        carried_from = carry.choose(tx, lock_job(tx, seeded.job))
    following = plane.attempt(seeded.job)
    with plane.ctx.db.write() as tx:
        tx.execute(update(Attempt).where(Attempt.id == following.attempt).values(carried_from=carried_from))
    return following


def test_what_is_put_back_leaves_nothing_unless_it_ended_by_itself(data_plane: Plane) -> None:
    """A trial that is told to stop may have ended just before; its last files come afterwards."""
    seeded = data_plane.job()
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Job).where(Job.id == seeded.job).values(restarts=1))
    tell(data_plane, seeded, written("a", b"a"))
    data_plane.set_state(seeded, "succeeded")
    tell(data_plane, seeded, written("a", b"a"), written("b", b"b"))
    assert [each["name"] for each in listed(data_plane, seeded)] == ["a", "b"]

    stopped = data_plane.job()
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Job).where(Job.id == stopped.job).values(restarts=1, state="queued"))
        tx.execute(update(Attempt).where(Attempt.id == stopped.attempt).values(state="preempted"))
    assert tell(data_plane, stopped, written("a", b"a")).missing == []
    assert listed(data_plane, stopped) == []


def test_files_of_one_name_in_several_folders_all_stay(data_plane: Plane) -> None:
    seeded = data_plane.job()
    output = wire.FileRef(path="a", size=1, sha256=sha256(b"o"))
    answer = tell(data_plane, seeded, written("a", b"c"), written("a", b"j", "job"), output=[output])
    assert set(answer.missing) == {sha256(b"o"), sha256(b"c"), sha256(b"j")}
    assert answer.room is not None
    assert {each["state"] for each in listed(data_plane, seeded)} == {"arriving"}
    for data in (b"o", b"c", b"j"):
        data_plane.put(data)
    assert [(each["name"], each["root"], each["state"]) for each in listed(data_plane, seeded)] == [
        ("a", "output", "stored"),
        ("a", "code", "stored"),
        ("a", "job", "stored"),
    ]
    assert [each["root"] for each in listed(data_plane, seeded, all="false")] == ["output"]
    url = f"/jobs/{seeded.job}/outputs/a"
    assert data_plane.get(url).content == b"o"
    assert data_plane.get(url, params={"root": "job"}).content == b"j"
    assert data_plane.get(url, params={"root": "code", "node_rank": 0}).content == b"c"
    assert data_plane.get(url, params={"node_rank": 1}).status_code == 404
    assert data_plane.get(f"/jobs/{seeded.job}").json()["storage"]["outputs"] == 3


def test_files_of_one_name_on_two_nodes_both_stay(data_plane: Plane) -> None:
    seeded = data_plane.job(resources={"gpus": 1, "nodes": 2})
    with data_plane.ctx.db.write() as tx:
        tx.execute(insert(Member).values(attempt_id=seeded.attempt, node_rank=1, node="elsewhere"))
    tell(data_plane, seeded, written("snapshot.pt", b"1"), node="elsewhere")
    tell(data_plane, seeded, written("snapshot.pt", b"0"))
    data_plane.put(b"0")
    data_plane.put(b"1")
    found = [(each["node_rank"], each["node"], each["sha256"]) for each in listed(data_plane, seeded)]
    assert found == [(0, home.node_name(), sha256(b"0")), (1, "elsewhere", sha256(b"1"))]
    url = f"/jobs/{seeded.job}/outputs/snapshot.pt"
    assert data_plane.get(url, params={"node_rank": 1}).content == b"1"
    assert data_plane.get(url).content == b"0"


def test_a_report_of_an_earlier_attempt_that_comes_late_changes_nothing(data_plane: Plane) -> None:
    seeded = data_plane.job()
    later = data_plane.attempt(seeded.job)
    tell(data_plane, later, written("a", b"new"))
    data_plane.put(b"new")
    assert tell(data_plane, seeded, written("a", b"old")).missing == []
    assert [each["sha256"] for each in listed(data_plane, seeded)] == [sha256(b"new")]


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a//b", "a\0b"])
def test_a_path_that_leads_out_is_refused(data_plane: Plane, path: str) -> None:
    seeded = data_plane.job()
    message = wire.OutputReport(files=[], written=[written(path, b"x")])
    assert data_plane.post(seeded, "outputs", message).status_code == 422
    message = wire.OutputReport(files=[], deleted=[wire.Place(root=Root.CODE, path=path)])
    assert data_plane.post(seeded, "outputs", message).status_code == 422


def test_a_file_that_the_job_removed_is_told_and_its_blob_goes(data_plane: Plane) -> None:
    seeded = data_plane.job()
    tell(data_plane, seeded, written("old.pt", b"old"))
    data_plane.put(b"old")
    tell(data_plane, seeded, deleted=[wire.Place(root=Root.CODE, path="old.pt")])
    (found,) = listed(data_plane, seeded)
    assert (found["state"], found["size"]) == ("deleted", 0)
    assert listed(data_plane, seeded, all="false") == []
    assert not data_plane.ctx.store.has(sha256(b"old"))


def test_a_file_that_stays_on_its_node_is_listed_and_brought_when_asked_for(data_plane: Plane) -> None:
    seeded = data_plane.job()
    huge = wire.WrittenFile(path="huge.pt", size=10**12, sha256="", on_node=True)
    assert tell(data_plane, seeded, huge, kept=KEPT).missing == []
    data_plane.set_state(seeded, "succeeded", settled=True)
    (found,) = listed(data_plane, seeded)
    assert (found["state"], found["place"], found["wanted"]) == ("on-node", f"{KEPT}/code/huge.pt", False)
    assert data_plane.get(f"/jobs/{seeded.job}").json()["storage"]["outputs"] == 0
    assert beat(data_plane, seeded.attempt).bring == []

    answer = data_plane.live.client.post(f"/api/v1/jobs/{seeded.job}/outputs/bring")
    assert answer.status_code == 202, answer.text
    assert [each["wanted"] for each in answer.json()] == [True]
    (order,) = beat(data_plane, seeded.attempt).bring
    assert (order.attempt, order.files) == (seeded.attempt, [wire.Place(root=Root.CODE, path="huge.pt")])

    tell(data_plane, seeded, written("huge.pt", b"brought"))
    data_plane.put(b"brought")
    assert beat(data_plane, seeded.attempt).bring == []
    assert listed(data_plane, seeded)[0]["state"] == "stored"


def test_what_stays_on_a_node_goes_with_the_job(data_plane: Plane) -> None:
    seeded = data_plane.job()
    tell(data_plane, seeded, written("huge.pt", b"huge", on_node=True), kept=KEPT)
    data_plane.set_state(seeded, "succeeded", settled=True)
    orders = beat(data_plane, seeded.attempt, "att-unknown")
    assert orders.discard == []
    assert data_plane.live.client.post(f"/api/v1/jobs/{seeded.job}/discard").status_code == 200
    assert beat(data_plane, seeded.attempt, "att-unknown").discard == [seeded.attempt]
    assert listed(data_plane, seeded) == []


def beat(plane: Plane, *kept: str, retained: Sequence[str] = ()) -> wire.Orders:
    identity = wire.Identity(node_id=home.node_name(), home_id="home", boot_id="boot", pid_namespace="1")
    message = wire.Heartbeat(
        identity=identity, devices=[], attempts=[], disk_free=1, kept=[*kept], retained=[*retained]
    )
    answer = plane.node.post("/api/v1/agent/heartbeat", content=message.model_dump_json())
    assert answer.status_code == 200, answer.text
    return wire.Orders.model_validate_json(answer.content)


def test_the_next_attempt_finds_what_the_one_before_has_left(data_plane: Plane) -> None:
    seeded = data_plane.job(state="starting")
    gone = [wire.Place(root=Root.CODE, path="gone.py")]
    tell(data_plane, seeded, written("snapshot.pt", b"1"), written("x", b"never here", "job"), deleted=gone)
    data_plane.put(b"1")
    second = next_attempt(data_plane, seeded)
    found = launch(data_plane, second).carry
    assert found is not None
    assert (found.attempt, found.settled, found.deleted) == (seeded.attempt, False, gone)
    assert [(file.path, file.root, file.sha256) for file in found.files] == [("snapshot.pt", Root.CODE, sha256(b"1"))]

    # The second one changed one file and added another before its node was lost: what it did not touch is the first's.
    tell(data_plane, second, written("new.pt", b"2"), saved=True)
    data_plane.put(b"2")
    data_plane.set_state(seeded, "running", settled=True)
    third = next_attempt(data_plane, second, state="lost")
    found = launch(data_plane, third).carry
    assert found is not None
    assert {file.path: file.attempt for file in found.files} == {
        "snapshot.pt": seeded.attempt,
        "new.pt": second.attempt,
    }


def settle(plane: Plane, seeded: Seeded) -> bool:
    answer = plane.node.post(f"/api/v1/agent/attempts/{seeded.attempt}/settled")
    assert answer.status_code == 200, answer.text
    return wire.Settled.model_validate_json(answer.content).awaited


def test_a_node_retains_the_files_until_the_next_attempt_has_begun(data_plane: Plane) -> None:
    seeded = data_plane.job(state="starting", resources={"gpus": 0})
    tell(data_plane, seeded, written("snapshot.pt", b"1"))
    data_plane.put(b"1")
    both = [seeded.attempt, "att-unknown"]
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Attempt).where(Attempt.id == seeded.attempt).values(state="preempted", started_us=1))
        tx.execute(update(Job).where(Job.id == seeded.job).values(state="queued"))
    assert settle(data_plane, seeded), "its job waits"
    assert beat(data_plane, retained=both).forget == []

    second = next_attempt(data_plane, seeded, state="preempted")
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Job).where(Job.id == seeded.job).values(state="assigned"))
        tx.execute(update(Attempt).where(Attempt.id == second.attempt).values(state="assigned"))
    assert beat(data_plane, retained=both).forget == []
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Job).where(Job.id == seeded.job).values(state="running"))
        tx.execute(update(Attempt).where(Attempt.id == second.attempt).values(state="running", started_us=2))
    assert beat(data_plane, retained=both).forget == [seeded.attempt]


@pytest.mark.parametrize("how", ["ended", "restores", "carry"])
def test_files_that_nobody_goes_on_from_are_not_retained(data_plane: Plane, how: str) -> None:
    seeded = data_plane.job(state="running", resources={"gpus": 0}, carry=how != "carry")
    if how == "restores":
        data_plane.checkpoint(seeded, 3, {"state": b"state"})
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Attempt).where(Attempt.id == seeded.attempt).values(state="preempted", started_us=1))
        state = "cancelled" if how == "ended" else "queued"
        tx.execute(update(Job).where(Job.id == seeded.job).values(state=state))
    assert not settle(data_plane, seeded)
    assert beat(data_plane, retained=[seeded.attempt]).forget == [seeded.attempt]


def test_an_attempt_that_was_carried_and_failed_before_its_first_step_is_no_example(data_plane: Plane) -> None:
    seeded = data_plane.job(state="starting")
    tell(data_plane, seeded, written("snapshot.pt", b"torn"))
    data_plane.put(b"torn")
    second = next_attempt(data_plane, seeded)
    assert launch(data_plane, second).carry is not None
    third = next_attempt(data_plane, second)
    assert launch(data_plane, third).carry is None
    fourth = next_attempt(data_plane, third)
    assert launch(data_plane, fourth).carry is not None


@pytest.mark.parametrize("how", ["a step", "saved", "lost", "stopped", "the box"])
def test_one_that_got_further_or_was_not_at_fault_is(data_plane: Plane, how: str) -> None:
    seeded = data_plane.job(state="starting")
    tell(data_plane, seeded, written("snapshot.pt", b"good"))
    data_plane.put(b"good")
    second = next_attempt(data_plane, seeded)
    if how == "a step":
        series = {"job_id": second.job, "attempt_id": second.attempt, "attempt": 2, "stream": "s", "rank": 0}
        with data_plane.ctx.db.write() as tx:
            tx.execute(insert(MetricSeries).values(**series, name="loss", last_step=1, last_special=0))
    if how == "saved":
        tell(data_plane, second, saved=True)
    values: dict[str, Any] = {
        "lost": {"state": "lost"},
        "stopped": {"result": FAILED | {"stop": "timeout"}},
        "the box": {"result": FAILED | {"fingerprint": "gpu-fault"}},
    }.get(how, {})
    third = next_attempt(data_plane, second, **values)
    assert launch(data_plane, third).carry is not None


@pytest.mark.parametrize("spec", [{"carry": False}, {"live": "/home/ada/project"}])
def test_some_jobs_begin_anew(data_plane: Plane, spec: dict[str, Any]) -> None:
    seeded = data_plane.job(state="starting", **spec)
    tell(data_plane, seeded, written("snapshot.pt", b"1"))
    data_plane.put(b"1")
    assert launch(data_plane, next_attempt(data_plane, seeded)).carry is None


def test_a_rerun_begins_with_what_the_job_has_left_if_it_is_asked_to(data_plane: Plane) -> None:
    seeded = data_plane.job(state="starting", resources={"gpus": 0})
    tell(data_plane, seeded, written("snapshot.pt", b"1"))
    data_plane.put(b"1")
    last = next_attempt(data_plane, seeded)
    data_plane.set_state(seeded, "cancelled", settled=True)
    data_plane.set_state(last, "cancelled", settled=True)
    for asked in (True, False):  # the first is cancelled by then, so that nobody needs the files
        answer = data_plane.live.client.post(f"/api/v1/jobs/{seeded.job}/rerun", json={"carry": asked})
        assert answer.status_code == 201, answer.text
        again = answer.json()["id"]
        refused = data_plane.live.client.post(f"/api/v1/jobs/{seeded.job}/discard")
        assert refused.status_code == (409 if asked else 200), refused.text
        with data_plane.ctx.db.write() as tx:
            chosen = carry.choose(tx, lock_job(tx, again))
            tx.execute(update(Job).where(Job.id == again).values(state="cancelled"))
        assert chosen == (seeded.attempt if asked else None)
