"""Which blobs a node may read: every way in which it may need one, by state and by node."""

from collections.abc import Callable

import pytest
from sqlalchemy import update

from service.db.models import Attempt, Output
from tests.support.plane import Plane, Seeded, sha256
from torchyard import wire

DATA = b"somebody's data"
ELSEWHERE = "elsewhere"
#: Makes an attempt in a state on a node that has something to do with `DATA`.
Relation = Callable[[Plane, str, str | None], Seeded]


def snapshot(plane: Plane) -> str:
    files = [{"path": "data", "size": len(DATA), "sha256": sha256(DATA)}]
    made = str(plane.live.client.post("/api/v1/snapshots", json={"files": files}).json()["id"])
    plane.live.client.put(f"/api/v1/snapshots/{made}/blobs/{sha256(DATA)}", content=DATA)
    plane.live.client.post(f"/api/v1/snapshots/{made}/commit")
    return made


def wrote(plane: Plane, node_rank: int = 0) -> Seeded:
    """An attempt that has ended and left the data as a file of its node rank."""
    seeded = plane.job()
    plane.post(
        seeded, "outputs", wire.OutputReport(files=[wire.FileRef(path="x", size=len(DATA), sha256=sha256(DATA))])
    )
    plane.put(DATA)
    plane.set_state(seeded, "succeeded", settled=True)
    with plane.ctx.db.write() as tx:
        tx.execute(update(Output).values(node_rank=node_rank))
    return seeded


def carrying(plane: Plane, before: Seeded, state: str, node: str | None) -> Seeded:
    """The next attempt of a job, which begins with the files of the one before."""
    seeded = plane.attempt(before.job, state=state, node=node)
    with plane.ctx.db.write() as tx:
        tx.execute(update(Attempt).where(Attempt.id == seeded.attempt).values(carried_from=before.attempt))
    return seeded


def saved(plane: Plane) -> tuple[Seeded, str]:
    """An attempt that has ended, and its checkpoint."""
    seeded = plane.job()
    checkpoint = plane.checkpoint(seeded, 7, {"state.pt": DATA}).checkpoint
    assert checkpoint is not None
    plane.set_state(seeded, "succeeded", settled=True)
    return seeded, checkpoint


def code(plane: Plane, state: str, node: str | None) -> Seeded:
    return plane.job(state=state, node=node, code=snapshot(plane))


def restores(plane: Plane, state: str, node: str | None) -> Seeded:
    return plane.job(state=state, node=node, restore=saved(plane)[1])


def carries(plane: Plane, state: str, node: str | None) -> Seeded:
    return carrying(plane, wrote(plane), state, node)


def carries_from_before(plane: Plane, state: str, node: str | None) -> Seeded:
    between = carrying(plane, wrote(plane), "failed", None)
    return carrying(plane, between, state, node)


def carries_another_rank(plane: Plane, state: str, node: str | None) -> Seeded:
    return carrying(plane, wrote(plane, node_rank=1), state, node)


def has_written(plane: Plane, state: str, node: str | None) -> Seeded:
    return plane.attempt(wrote(plane).job, state=state, node=node)


def has_saved(plane: Plane, state: str, node: str | None) -> Seeded:
    return plane.attempt(saved(plane)[0].job, state=state, node=node)


def nothing(plane: Plane, state: str, node: str | None) -> Seeded:
    snapshot(plane)
    return plane.job(state=state, node=node)


NEEDS = (code, restores, carries, carries_from_before)
DOES_NOT = (carries_another_rank, has_written, has_saved, nothing)
LIVE = ("assigned", "starting", "running", "stopping", "unreachable")
OVER = ("succeeded", "failed", "cancelled", "preempted", "voided", "lost")


@pytest.mark.parametrize("relation", [*NEEDS, *DOES_NOT], ids=lambda relation: relation.__name__)
def test_a_node_reads_what_its_attempts_start_from_while_they_live(data_plane: Plane, relation: Relation) -> None:
    url = f"/api/v1/agent/blobs/{sha256(DATA)}"
    elsewhere = relation(data_plane, "running", ELSEWHERE)
    found = data_plane.node.get(url)
    assert (found.status_code, found.json()["type"].rpartition("/")[2]) == (404, "not-found")
    data_plane.set_state(elsewhere, "succeeded", settled=True)
    seeded = relation(data_plane, "assigned", None)
    for state in (*LIVE, *OVER):
        data_plane.set_state(seeded, state)
        answer = data_plane.node.get(url)
        if relation in NEEDS and state in LIVE:
            assert (answer.status_code, answer.content) == (200, DATA), state
        else:
            assert answer.status_code == 404, state
