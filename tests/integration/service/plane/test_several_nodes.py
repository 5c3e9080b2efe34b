"""What comes from several nodes of one attempt: word to go, logs, checkpoints and outputs."""

import pytest
from sqlalchemy import insert, select, update

from service.artifacts import checkpoints, outputs
from service.attempts import memory
from service.db.models import Attempt, Checkpoint, Job, Member
from tests.support.plane import Plane, Seeded, sha256
from torchyard import home, wire

NODES = (home.node_name, lambda: "elsewhere")


@pytest.fixture
def gang(data_plane: Plane) -> Seeded:
    """A running attempt on the embedded node and another."""
    seeded = data_plane.job(resources={"gpus": 2, "nodes": 2})
    with data_plane.ctx.db.write() as tx:
        tx.execute(insert(Member).values(attempt_id=seeded.attempt, node_rank=1, node="elsewhere"))
    return seeded


def report(
    plane: Plane, gang: Seeded, node_rank: int, files: dict[str, bytes], *, hashed: bool = True, step: int = 7
) -> wire.CheckpointAnswer:
    message = wire.CheckpointReport(
        name=f"step-{step:09d}",
        step=step,
        created_us=step,
        metrics={"loss": float(node_rank)},
        files=[
            wire.CheckpointFile(path=path, size=len(data), sha256=sha256(data) if hashed else None)
            for path, data in files.items()
        ],
    )
    facts = memory.facts(plane.ctx.db, plane.ctx.memory, gang.attempt)
    return checkpoints.report(plane.ctx.db, plane.ctx.store, facts, message, NODES[node_rank](), plane.ctx.now_us())


def bring(plane: Plane, gang: Seeded, node_rank: int, files: dict[str, bytes], step: int = 7) -> None:
    report(plane, gang, node_rank, files, hashed=False, step=step)
    answer = report(plane, gang, node_rank, files, step=step)
    for data in files.values():
        if sha256(data) in answer.missing:
            assert plane.put(data).status_code == 204
    assert report(plane, gang, node_rank, files, step=step).missing == []


def state(plane: Plane) -> tuple[str, int, object]:
    with plane.ctx.db.read() as tx:
        row = tx.execute(select(Checkpoint.state, Checkpoint.size, Checkpoint.metrics)).one()
    return row.state, row.size, row.metrics["loss"]


def test_a_checkpoint_is_stored_when_all_nodes_have_brought_theirs(data_plane: Plane, gang: Seeded) -> None:
    first, second = {"state.pt": b"model", "shards/0": b"00"}, {"shards/1": b"111"}
    bring(data_plane, gang, 1, second)
    assert state(data_plane) == ("committed", 3, 1.0)
    bring(data_plane, gang, 1, second)
    assert state(data_plane)[0] == "committed"
    bring(data_plane, gang, 0, first)
    assert state(data_plane) == ("stored", 10, 0.0)
    (found,) = data_plane.get(f"/jobs/{gang.job}/checkpoints").json()
    assert [each["name"] for each in found["files"]] == ["shards/0", "shards/1", "state.pt"]
    with data_plane.ctx.db.read() as tx:
        restore = checkpoints.restore(tx, found["id"])
    assert {file.path for file in restore.files} == {*first, *second}
    assert all(file.sha256 for file in restore.files)


def test_a_node_that_wrote_nothing_says_so(data_plane: Plane, gang: Seeded) -> None:
    bring(data_plane, gang, 0, {"state.pt": b"model"})
    assert state(data_plane)[0] == "committed"
    bring(data_plane, gang, 1, {})
    assert state(data_plane)[0] == "stored"
    answer = report(data_plane, gang, 1, {"late": b"x"}, hashed=False)
    assert answer.remove == ["step-000000007"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_path_of_two_nodes_is_the_first_ones(data_plane: Plane, gang: Seeded, order: tuple[int, int]) -> None:
    for node_rank in order:
        bring(data_plane, gang, node_rank, {"state.pt": b"rank" + b"0" * node_rank, f"own-{node_rank}": b"x"})
    (found,) = data_plane.get(f"/jobs/{gang.job}/checkpoints").json()
    assert {each["name"]: each["size"] for each in found["files"]} == {"state.pt": 4, "own-0": 1, "own-1": 1}
    assert found["state"] == "stored"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_output_of_two_nodes_is_the_first_ones(data_plane: Plane, gang: Seeded, order: tuple[int, int]) -> None:
    facts = memory.facts(data_plane.ctx.db, data_plane.ctx.memory, gang.attempt)
    for node_rank in order:
        data = b"strategy" + b"0" * node_rank
        files = [wire.FileRef(path="strategy.json", size=len(data), sha256=sha256(data))]
        message = wire.OutputReport(files=files)
        for wanted in outputs.report(
            data_plane.ctx.db, data_plane.ctx.store, facts, message, NODES[node_rank]()
        ).missing:
            assert wanted == sha256(data)
            data_plane.put(data)
    (found,) = data_plane.get(f"/jobs/{gang.job}/outputs").json()
    assert found["size"] == 8


def test_each_launcher_has_its_own_log(data_plane: Plane, gang: Seeded) -> None:
    assert data_plane.log(gang, 0, b"here", rank=-1).status_code == 200
    assert data_plane.log(gang, 0, b"there", rank=-2).status_code == 403
    assert data_plane.get(f"/jobs/{gang.job}/logs", params={"rank": -2}).content == b""


def test_members_and_their_ranks_are_shown(data_plane: Plane, gang: Seeded) -> None:
    (attempt,) = data_plane.get(f"/jobs/{gang.job}/attempts").json()
    assert [(each["node"], each["first_rank"], each["last_rank"]) for each in attempt["members"]] == [
        (home.node_name(), 0, 1),
        ("elsewhere", 2, 3),
    ]
    assert data_plane.get(f"/jobs/{gang.job}").json()["gpus"] == 4


def test_the_word_to_go_over_http(data_plane: Plane, gang: Seeded) -> None:
    where = wire.Prepared(address="10.0.0.1", port=20001)
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Attempt).where(Attempt.id == gang.attempt).values(state="assigned"))
        tx.execute(update(Job).where(Job.id == gang.job).values(state="assigned"))
        tx.execute(update(Member).values(nonce="n"))
        tx.execute(update(Member).where(Member.node_rank == 1).values(prepared={"address": "10.0.0.2", "port": 5}))
    answer = data_plane.post(gang, "prepared", where)
    assert wire.Go.model_validate_json(answer.content) == wire.Go(go=True, address="10.0.0.1", port=20001)
    data_plane.set_state(gang, "cancelled")
    assert data_plane.post(gang, "prepared", where).status_code == 409
