"""An attempt's way through the routes of the node agents, with the real state machine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.exceptions import AuthenticationError
from sqlalchemy import insert, select, update

from service.db.models import Allocation, Attempt, Device, Event, Job, Member, SnapshotFile
from service.infra.dispatch import node_key_prefix
from tests.support import plane, redis
from tests.support.plane import Plane, Seeded, sha256
from torchyard import home, wire

IDENTITY = wire.Identity(node_id="machine", home_id="home", boot_id="boot", pid_namespace="1")
SLOT = wire.Device(uuid="cpu-0", index=0, kind=wire.DeviceKind.CPU_SLOT, name="CPU slot", memory=0)


def register(plane: Plane, node: str | None = None) -> httpx.Response:
    message = wire.Register(
        node=node or home.node_name(),
        identity=IDENTITY,
        version="0.1.0",
        hostname="box",
        devices=[SLOT],
        cpus=2,
        memory=2**30,
        runs_as_root=False,
    )
    return plane.node.post("/api/v1/agent/register", content=message.model_dump_json())


def beat(plane: Plane, *reports: wire.AttemptReport) -> wire.Orders:
    message = wire.Heartbeat(identity=IDENTITY, devices=[SLOT], attempts=list(reports), disk_free=2**40)
    answer = plane.node.post("/api/v1/agent/heartbeat", content=message.model_dump_json())
    assert answer.status_code == 200, answer.text
    return wire.Orders.model_validate_json(answer.content)


def state(plane: Plane, seeded: Seeded) -> str:
    return str(plane.get(f"/jobs/{seeded.job}").json()["state"])


RESULT = wire.Result(kind=wire.ResultKind.EXITED, exit_code=0, started_us=5, ended_us=9)


def test_a_node_learns_what_it_needs(data_plane: Plane) -> None:
    answer = wire.Registered.model_validate_json(register(data_plane).content)
    assert answer.installation == data_plane.ctx.installation
    assert (data_plane.ctx.store.inbox / wire.INBOX_PROBE).read_text() == answer.inbox_probe
    assert answer.disk_floor == data_plane.ctx.settings.disk_floor
    assert answer.inbox == str(data_plane.ctx.store.inbox)
    assert register(data_plane, "elsewhere").status_code == 403


def test_an_attempt_from_assignment_to_the_end(data_plane: Plane) -> None:
    register(data_plane)
    code = {"path": "train.py", "size": 3, "sha256": sha256(b"run")}
    made = data_plane.live.client.post("/api/v1/snapshots", json={"files": [code]}).json()
    data_plane.live.client.put(f"/api/v1/snapshots/{made['id']}/blobs/{sha256(b'run')}", content=b"run")
    data_plane.live.client.post(f"/api/v1/snapshots/{made['id']}/commit")
    earlier = data_plane.job()
    checkpoint = data_plane.checkpoint(earlier, 40, {"state.pt": b"weights"}).checkpoint
    data_plane.set_state(earlier, "succeeded", settled=True)
    seeded = data_plane.job(state="assigned", restore=checkpoint, code=made["id"])
    with data_plane.ctx.db.write() as tx:
        values: dict[str, Any] = {"attempt_id": seeded.attempt, "node": home.node_name(), "uuid": "cpu-0", "index": 0}
        tx.execute(insert(Allocation).values(**values, created_us=1))
    assert beat(data_plane).assigned == [seeded.attempt]

    launch = wire.Launch.model_validate_json(data_plane.node.get(f"/api/v1/agent/attempts/{seeded.attempt}").content)
    assert (launch.job, launch.number, launch.node_rank) == (seeded.job, 1, 0)
    assert [device.uuid for device in launch.devices] == ["cpu-0"]
    assert [(file.path, file.mode) for file in launch.code or ()] == [("train.py", 0o644)]
    assert launch.restore is not None
    assert (launch.restore.step, launch.restore.files[0].sha256) == (40, sha256(b"weights"))
    assert data_plane.node.get(f"/api/v1/agent/blobs/{sha256(b'run')}").content == b"run"

    for _ in range(2):
        answer = data_plane.post(seeded, "claim", wire.Claim(nonce="first"))
        assert wire.Launch.model_validate_json(answer.content) == launch
    assert data_plane.post(seeded, "claim", wire.Claim(nonce="second")).status_code == 409
    assert state(data_plane, seeded) == "starting"
    for _ in range(2):
        assert data_plane.post(seeded, "running", wire.Started(started_us=5)).status_code == 204
    assert state(data_plane, seeded) == "running"
    report = wire.AttemptReport(attempt=seeded.attempt, phase=wire.Phase.RUNNING, started_us=5)
    assert [order.action for order in beat(data_plane, report).orders] == [wire.Action.RUN]
    for _ in range(2):
        assert data_plane.post(seeded, "result", RESULT).status_code == 204
    assert state(data_plane, seeded) == "succeeded"
    assert data_plane.log(seeded, 0, b"late").status_code == 200, "streams may follow the result"
    assert data_plane.node.get(f"/api/v1/agent/attempts/{seeded.attempt}").status_code == 409
    over = report.model_copy(update={"phase": wire.Phase.ENDED})
    assert beat(data_plane, over).forget == []
    for _ in range(2):
        answer = data_plane.node.post(f"/api/v1/agent/attempts/{seeded.attempt}/settled")
        assert wire.Settled.model_validate_json(answer.content) == wire.Settled(awaited=False)
    assert beat(data_plane, over).forget == [seeded.attempt]
    with data_plane.ctx.db.read() as tx:
        kinds = list(tx.scalars(select(Event.kind).where(Event.job_id == seeded.job).order_by(Event.seq)))
        assert tx.scalar(select(Member.nonce).where(Member.attempt_id == seeded.attempt)) == "first"
        assert tx.scalar(select(SnapshotFile.path)) == "train.py"
        assert tx.scalar(select(Device.present).where(Device.uuid == "cpu-0"))
    assert kinds == ["claimed", "running", "succeeded"]


@pytest.mark.parametrize(("before", "status"), [("voided", 204), ("lost", 204), ("assigned", 409)])
def test_a_result_that_nobody_waits_for_changes_nothing(data_plane: Plane, before: str, status: int) -> None:
    seeded = data_plane.job()
    data_plane.set_state(seeded, "queued")
    with data_plane.ctx.db.write() as tx:
        tx.exec_driver_sql(f"UPDATE attempts SET state = '{before}' WHERE id = '{seeded.attempt}'")
    assert data_plane.post(seeded, "result", RESULT).status_code == status
    assert data_plane.post(seeded, "claim", wire.Claim(nonce="n")).status_code in (409, 200)


@pytest.mark.parametrize(("exit_code", "awaited"), [(0, False), (1, True)])
def test_a_result_settles_the_attempt_if_nothing_is_left(data_plane: Plane, exit_code: int, *, awaited: bool) -> None:
    """Told again it is answered alike, since its answer may have been lost."""
    register(data_plane)
    seeded = data_plane.job(max_retries=1)
    result = RESULT.model_copy(update={"settled": True, "exit_code": exit_code})
    for _ in range(2):
        answer = data_plane.post(seeded, "result", result)
        assert wire.Settled.model_validate_json(answer.content) == wire.Settled(awaited=awaited)
    ended = wire.AttemptReport(attempt=seeded.attempt, phase=wire.Phase.ENDED, started_us=5)
    assert beat(data_plane, ended).forget == [seeded.attempt]


def test_the_next_attempt_learns_of_a_run_only_if_it_is_the_only_one(data_plane: Plane) -> None:
    register(data_plane)
    made: list[dict[str, list[str]] | None] = [{}, {"wandb": ["a"], "mlflow": ["m", "n"]}, {"wandb": ["a"]}]
    expected: list[dict[str, str]] = [{}, {"wandb": "a"}, {"wandb": "a"}]
    before = data_plane.job()
    for runs, known in zip([*made, {"wandb": ["b"]}, None], [*expected, {}, {}], strict=True):
        with data_plane.ctx.db.write() as tx:
            result = {"result": {"kind": "exited", "ended_us": 1, "tracker_runs": runs}, "started_us": 1}
            tx.execute(update(Attempt).where(Attempt.id == before.attempt).values(**result))
        before = data_plane.attempt(before.job, state="assigned")
        answer = data_plane.node.get(f"/api/v1/agent/attempts/{before.attempt}")
        assert wire.Launch.model_validate_json(answer.content).tracker_runs == known


def test_an_attempt_after_trials_makes_a_run_of_its_own(data_plane: Plane) -> None:
    register(data_plane)
    seeded = data_plane.job()
    for number, run in enumerate(("a", "b"), 1):
        with data_plane.ctx.db.write() as tx:
            result = {"result": {"kind": "exited", "ended_us": 1, "tracker_runs": {"wandb": [run]}}, "started_us": 1}
            tx.execute(update(Attempt).where(Attempt.id == seeded.attempt).values(**result))
            tx.execute(update(Job).where(Job.id == seeded.job).values(restarts=1))
        seeded = data_plane.attempt(seeded.job, state="assigned")
        answer = data_plane.node.get(f"/api/v1/agent/attempts/{seeded.attempt}")
        known = wire.Launch.model_validate_json(answer.content).tracker_runs
        assert known == ({} if number == 1 else {"wandb": "b"})


def test_a_committed_checkpoint_says_where_it_lies(data_plane: Plane) -> None:
    register(data_plane)
    first = data_plane.job()
    checkpoint = data_plane.report(first, 7, {"state.pt": b"weights"}, hashed=False).checkpoint
    again = data_plane.attempt(first.job, state="assigned", resumed_from_step=7, restore=checkpoint)
    launch = wire.Launch.model_validate_json(data_plane.node.get(f"/api/v1/agent/attempts/{again.attempt}").content)
    assert launch.restore is not None
    assert (launch.restore.attempt, launch.restore.name) == (first.attempt, "step-000000007")
    assert launch.restore.files[0].sha256 == ""


def test_an_unregistered_node_is_told_to_register(data_plane: Plane) -> None:
    with data_plane.ctx.db.write() as tx:
        tx.exec_driver_sql("DELETE FROM nodes")
    message = wire.Heartbeat(identity=IDENTITY, devices=[], attempts=[], disk_free=1)
    answer = data_plane.node.post("/api/v1/agent/heartbeat", content=message.model_dump_json())
    assert answer.status_code in (404, 409)
    assert "register" in answer.json()["detail"]


def test_messages_that_are_not_valid_are_problems(data_plane: Plane) -> None:
    seeded = data_plane.job()
    for what in ("claim", "running", "result", "checkpoints", "outputs"):
        answer = data_plane.node.post(f"/api/v1/agent/attempts/{seeded.attempt}/{what}", content="{}")
        assert answer.status_code == 422, what
        assert answer.json()["errors"], what


def test_what_a_database_cannot_hold_blocks_no_result(data_plane: Plane) -> None:
    seeded = data_plane.job()
    result = RESULT.model_copy(
        update={"kind": wire.ResultKind.UNUSABLE, "message": "a\0b", "traceback": "Trace\0back", "exit_code": None}
    )
    assert data_plane.post(seeded, "result", result).status_code == 204
    assert state(data_plane, seeded) == "failed"
    failed = data_plane.job()
    result = RESULT.model_copy(update={"exit_code": 1, "failed_rank": 0, "traceback": "Value\0Error"})
    assert data_plane.post(failed, "result", result).status_code == 204
    assert state(data_plane, failed) == "failed"


def test_half_characters_and_wrong_clocks_spoil_no_answer(data_plane: Plane) -> None:
    seeded = data_plane.job()
    url = f"/api/v1/agent/attempts/{seeded.attempt}"
    raw = '{"name": "step-1", "step": 1, "created_us": 9223372036854775807, "metrics": {"\\ud800": 1}, '
    raw += '"files": [{"path": "a", "size": 1}]}'
    assert data_plane.node.post(f"{url}/checkpoints", content=raw).status_code == 200
    (found,) = data_plane.get(f"/jobs/{seeded.job}/checkpoints").json()
    assert (found["metrics"], found["created_at"][:4]) == ({"?": 1.0}, "9999")
    raw = '{"kind": "exited", "exit_code": 1, "failed_rank": 0, "traceback": "Half\\ud800Error", "ended_us": 1}'
    assert data_plane.node.post(f"{url}/result", content=raw).status_code == 204
    assert data_plane.get(f"/jobs/{seeded.job}").json()["error"]["traceback"] == "Half?Error"
    huge = {"name": "step-2", "step": 1, "created_us": 1, "files": [{"path": "a", "size": 10**30}]}
    assert data_plane.node.post(f"{url}/checkpoints", json=huge).status_code == 422


def test_checkpoint_metrics_without_a_number_are_words(data_plane: Plane) -> None:
    seeded = data_plane.job()
    raw = '{"name": "step-1", "step": 1, "created_us": 1, "metrics": {"a": NaN, "b": Infinity, "c": "-inf", "d": 1}, '
    raw += '"files": [{"path": "a", "size": 1}]}'
    answer = data_plane.node.post(f"/api/v1/agent/attempts/{seeded.attempt}/checkpoints", content=raw)
    assert answer.status_code == 200, answer.text
    (found,) = data_plane.get(f"/jobs/{seeded.job}/checkpoints").json()
    assert found["metrics"] == {"a": "nan", "b": "inf", "c": "-inf", "d": 1.0}


def test_a_spec_that_is_valid_no_more_is_refused_and_to_ask_changes_nothing(data_plane: Plane) -> None:
    register(data_plane)
    seeded = data_plane.job(state="assigned")
    with data_plane.ctx.db.write() as tx:
        spec = tx.execute(select(Job.spec).where(Job.id == seeded.job)).scalar_one()
        tx.execute(update(Job).where(Job.id == seeded.job).values(spec={**spec, "gone": 1}))
    for _ in range(2):  # the node may ask again
        answer = data_plane.node.get(f"/api/v1/agent/attempts/{seeded.attempt}")
        assert answer.status_code == 409, answer.text
        assert "gone: unknown field: leave it out" in answer.json()["detail"]
    assert data_plane.get(f"/jobs/{seeded.job}").json()["state"] == "assigned"


def test_a_node_gets_its_own_account_in_redis_and_loses_it_with_its_token(
    serve: Callable[..., Any], short_tmp: Path
) -> None:
    with redis.serve(short_tmp, "secret") as server, serve(broker_url=server.url) as live, plane.plane(live) as served:
        registered = wire.Registered.model_validate_json(register(served).content)
        assert registered.broker_key_prefix == node_key_prefix(served.ctx.installation, home.node_name())
        (own,) = (token for token in live.client.get("/api/v1/tokens").json() if token["node"])
        with server.client_of(registered.broker_url) as node:
            assert node.ping()
            assert live.client.delete(f"/api/v1/tokens/{own['id']}").status_code == 204
            with pytest.raises(AuthenticationError):
                node.ping()
